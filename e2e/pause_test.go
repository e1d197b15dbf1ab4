package e2e

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// A pause until a time ends by itself on a server that was killed before it, or while it
// ended, or that was not there then; and not before.
func TestAPauseEndsWhoeverKillsTheServer(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		marks := filepath.Join(t.TempDir(), "starts")
		s := serveFolder(t, database, `
kind: schedule
name: often
run: {command: [/bin/sh, -c, 'date +%s%N >> `+marks+`']}
interval: 1s
`)
		sch := s.scheduleNamed("often")
		s.eventually("it runs", func() bool { return len(lines(marks)) > 0 })
		for _, away := range []bool{false, true} { // back before its end, and after it
			var now client.Schedule
			if status := s.call("POST", "/api/v1/schedules/"+sch.ID+"/pause", client.PauseRequest{Until: "2s", Note: "moving"}, &now); status != 200 || now.Pause == nil {
				t.Fatalf("pause: %d %+v", status, now)
			}
			until := now.Pause.Until.Time
			s.kill()
			s.eventually("its time has come", func() bool { return !away || time.Now().After(until) })
			s.start()
			s.eventually("it runs again", func() bool { return len(startsIn(t, marks, until, until.Add(time.Hour))) > 0 })
			if early := startsIn(t, marks, now.Pause.Since.Add(700*time.Millisecond), until); len(early) > 0 { // what had begun has ended by then
				t.Errorf("it ran at %v, before the end of its pause at %v", early, until)
			}
			if at := s.scheduleNamed("often"); !at.Enabled || at.Pause != nil {
				t.Errorf("%+v", at.Pause)
			}
		}
	})
}

// startsIn are the instants between two others that a command wrote down.
func startsIn(t *testing.T, marks string, from, to time.Time) (list []time.Time) {
	t.Helper()
	for _, text := range lines(marks) {
		ns, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if at := time.Unix(0, ns); !at.Before(from) && at.Before(to) {
			list = append(list, at)
		}
	}
	return list
}
