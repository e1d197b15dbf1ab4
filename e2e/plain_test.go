package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// serveFolder starts a server that serves a folder with these definitions.
func serveFolder(t *testing.T, database, definitions string) *server {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "schedules.yaml"), []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	s := &server{t: t, dir: t.TempDir(), url: "http://" + addr, log: &logBuffer{}}
	s.args = []string{"serve", "--addr", addr, "--database", database, "--allow-private", "127.0.0.1/32", "--drain", "1s", folder}
	s.start()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", s.url, s.log)
		}
	})
	return s
}

func (s *server) scheduleNamed(name string) client.Schedule {
	s.t.Helper()
	var page client.SchedulePage
	s.call("GET", "/api/v1/schedules?name="+name, nil, &page)
	if len(page.Items) != 1 {
		s.t.Fatalf("there is no schedule %s", name)
	}
	return page.Items[0]
}

func (s *server) plainSlots(id string) []client.Slot {
	s.t.Helper()
	var page client.Page[client.Slot]
	s.call("GET", "/api/v1/schedules/"+id+"/slots?limit=100", nil, &page)
	return page.Items
}

// slotAt is the slot of a run now.
func (s *server) slotAt(id string, at client.Instant) client.Slot {
	s.t.Helper()
	for _, slot := range s.plainSlots(id) {
		if slot.ScheduledFor.Equal(at.Time) {
			return slot
		}
	}
	s.t.Fatalf("there is no slot at %s", at)
	return client.Slot{}
}

func lines(path string) []string {
	text, _ := os.ReadFile(path) // none yet
	return strings.Fields(string(text))
}

// A served folder brings commands; their output is kept and shown. A server that
// is killed at any step of a command ran it once, or says that it does not know
// and asks. Nothing of a command outlives its server.
func TestAKilledCommandRanOnceOrNobodyKnows(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		marks := filepath.Join(t.TempDir(), "starts")
		children := filepath.Join(t.TempDir(), "children")
		s := serveFolder(t, database, `
kind: schedule
name: nightly
run:
  command: [/bin/sh, -c, 'echo $PAWL_SCHEDULED_FOR >> `+marks+`; sleep 300 & echo $! >> `+children+`; echo on its way; sleep 0.4; kill $!; echo done']
cron: "0 0 1 1 *"
concurrencyPolicy: Allow
`)
		sch := s.scheduleNamed("nightly")
		made := s.runAndKill(sch.ID, 14)
		known, unknown := 0, 0
		for _, m := range made {
			var slot client.Slot
			s.eventually("the slot is closed", func() bool {
				slot = s.slotAt(sch.ID, m.ScheduledFor)
				return slot.Status == "success" || slot.Status == "error"
			})
			starts := 0
			for _, mark := range lines(marks) {
				if mark == slot.ScheduledFor.UTC().Format("2006-01-02T15:04:05.000Z") {
					starts++
				}
			}
			switch {
			case starts == 1 && slot.Status == "success" && slot.Output != nil && slot.Output.Stdout == "on its way\ndone\n":
				known++
			case starts <= 1 && slot.Status == "error" && slot.Unknown && strings.Contains(slot.Error.Message, "unknown whether it ran"):
				unknown++
			default:
				t.Errorf("%d starts: %+v %+v", starts, slot, slot.Error)
			}
		}
		t.Logf("%d ran once, of %d nobody knows", known, unknown)
		if unknown > 0 {
			var why client.LaneWhy
			s.call("GET", "/api/v1/lanes/schedule/"+sch.ID+"/why", nil, &why)
			if why.Status != "Needs attention" || !strings.Contains(string(why.Issue), "pawl retry slot nightly") {
				t.Errorf("%+v", why)
			}
		}
		for _, slot := range made { // a person says what becomes of those
			if now := s.slotAt(sch.ID, slot.ScheduledFor); now.Unknown {
				at := now.ScheduledFor.UTC().Format("2006-01-02T15:04:05.000Z")
				if status := s.call("POST", "/api/v1/schedules/"+sch.ID+"/slots/"+at+"/retry", nil, nil); status != 200 {
					t.Errorf("retry: %d", status)
				}
			}
		}
		for _, slot := range made {
			s.eventually("the slot succeeded", func() bool { return s.slotAt(sch.ID, slot.ScheduledFor).Status == "success" })
		}
		for _, text := range lines(children) {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			s.eventually("process "+text+" is gone", func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
		}
	})
}

// runAndKill runs slots of a schedule by hand, and kills the server anywhere in the life of
// each.
func (s *server) runAndKill(id string, rounds int) (made []client.Slot) {
	s.t.Helper()
	for round := range rounds {
		var slot client.Slot
		if status := s.call("POST", "/api/v1/schedules/"+id+"/run", nil, &slot); status != 202 {
			s.t.Fatalf("round %d: %d", round, status)
		}
		made = append(made, slot)
		for end := time.Now().Add(time.Duration(rand.IntN(1500)) * time.Millisecond); time.Now().Before(end); {
			s.slotAt(id, slot.ScheduledFor)
		}
		s.kill()
		s.start()
	}
	return made
}

// zombie reports whether a process has ended and nobody has asked for how.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(text), ") Z ")
}
