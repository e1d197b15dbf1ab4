package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
)

func TestStoryTellsHowAJobWent(t *testing.T) {
	due := time.Date(2026, 1, 1, 12, 0, 3, 0, time.Local)
	after := func(d time.Duration) time.Time { return due.Add(d) }
	job := client.Job{Task: "http", RunAt: client.At(due)}
	laned := client.Job{Task: "http", RunAt: client.At(due), Lane: "till"}
	tests := map[string]struct {
		h    happening
		want string
	}{
		"on time":      {happening{what: succeeded, started: after(time.Millisecond), at: after(4 * time.Millisecond), job: job}, "12:00:03.004  on time +1 ms     http  order 7 → done"},
		"answered":     {happening{what: succeeded, started: due, at: due, job: job, status: 200}, "12:00:03.000  on time +0 ms     http  order 7 → 200"},
		"slow":         {happening{what: succeeded, started: due, at: after(900 * time.Millisecond), job: job}, "12:00:03.900  on time +0 ms     http  order 7 → done in 0.9 s"},
		"late":         {happening{what: succeeded, started: after(2 * time.Second), at: after(2 * time.Second), job: job}, "12:00:05.000  late +2.0 s       http  order 7 → done"},
		"turn":         {happening{what: succeeded, started: after(2 * time.Second), at: after(2 * time.Second), job: laned}, "12:00:05.000  its turn +2.0 s   http  order 7 → done"},
		"tried again":  {happening{what: retried, at: due, job: job, err: "127.0.0.1:1 answered 500 Internal Server Error"}, "12:00:03.000  failed            http  order 7 → 500 Internal Server Error, to be tried again"},
		"failed":       {happening{what: failed, at: due, job: job, err: "refused (allow it)"}, "12:00:03.000  gave up           http  order 7 → refused"},
		"cancelled":    {happening{what: cancelled, at: due, job: job}, "12:00:03.000  cancelled         http  order 7"},
		"nothing said": {happening{what: started, at: due, job: job}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			(&story{out: &out}).tell("order 7", tt.h)
			if got := strings.TrimSuffix(out.String(), "\n"); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
