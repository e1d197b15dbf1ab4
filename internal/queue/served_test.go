package queue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// chanceOf is what workers of a task were told.
type chanceOf struct {
	task string
	Chance
}

// told is a queue that notes what workers are told.
func told(t *testing.T) (*Queue, *[]chanceOf) {
	t.Helper()
	heard := &[]chanceOf{}
	sim, err := store.NewSimulation(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	q, err := New(Config{DB: sim.Open(store.SimulatedProcess{}), Node: store.Node{ID: "me"}, Served: func(task string, c Chance) { *heard = append(*heard, chanceOf{task, c}) }})
	if err != nil {
		t.Fatal(err)
	}
	return q, heard
}

// The workers of a node were told what it tells the others: hearing it again would
// have them look for nothing.
func TestANodeDoesNotHearItselfAboutTasks(t *testing.T) {
	q, heard := told(t)
	said := newSaid()
	said.task["mail"] = true
	said.look = []int{3}
	for from, want := range map[string]int{"me": 0, "other": 1, "mei": 1} {
		*heard = nil
		for _, m := range said.messages(from) {
			q.hear(m)
		}
		if len(*heard) != want || want > 0 && (*heard)[0] != (chanceOf{task: "mail"}) {
			t.Errorf("what %s says is heard as %v", from, *heard)
		}
	}
	*heard = nil
	q.hear("t mail\nq\n") // the door, and nodes of earlier versions, do not say who they are
	if len(*heard) != 1 {
		t.Errorf("heard %v", *heard)
	}
}

// Every message about tasks says who tells, however many tasks there are.
func TestMessagesAboutTasksSayWhoTells(t *testing.T) {
	said := newSaid()
	for n := range 300 {
		said.task[strings.Repeat("x", 60)+string(rune('0'+n%10))+strings.Repeat("y", n/10)] = true
	}
	said.news = true
	seen := 0
	list := said.messages("me")
	for _, m := range list {
		if len(m) > maxMessage+len(msgChanged) {
			t.Errorf("a message of %d bytes", len(m))
		}
		if n := strings.Count(m, "t x"); n > 0 {
			seen += n
			if !strings.HasPrefix(m, "f me\n") {
				t.Errorf("nobody says %.40q", m)
			}
		}
	}
	if seen != 300 || len(list) < 3 || len(list) > 8 || !strings.HasSuffix(list[len(list)-1], msgChanged) {
		t.Errorf("%d tasks in %d messages", seen, len(list))
	}
}

// New jobs are told with the instant at which they can be claimed: what is due, and
// the first of what is not.
func TestNewJobsAreToldWithTheirTime(t *testing.T) {
	q, heard := told(t)
	now := time.Unix(1_900_000_000, 0)
	job := func(task string, after time.Duration) store.Job {
		return store.Job{Task: task, Bucket: -1, RunAt: now.Add(after)}
	}
	q.tellCommitted([]store.Job{job("a", -time.Hour), job("a", 2*time.Hour), job("a", time.Hour), job("b", time.Minute), {Task: "own", RunAt: now}}, now)
	slices.SortFunc(*heard, func(a, b chanceOf) int { return a.At.Compare(b.At) })
	want := []chanceOf{{"a", Chance{At: now}}, {"b", Chance{At: now.Add(time.Minute)}}, {"a", Chance{At: now.Add(time.Hour)}}}
	if !slices.Equal(*heard, want) {
		t.Errorf("told %v, want %v", *heard, want)
	}
}
