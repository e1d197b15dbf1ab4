package queue

import (
	"context"
	"testing"

	"github.com/pawlrun/pawl/internal/store"
)

// FuzzHear: anybody who reaches the database can send a hint. None makes a node panic,
// and none makes it take a share or a job for its own.
func FuzzHear(f *testing.F) {
	for _, text := range []string{"d 1 0 1700000000000\n", "c 5\n", "l 3\n", "t task\n", "n changed", "d 99999999999 0 0\n", "d 0 1 -9223372036854775808\nc -1\nl -1\n", "t \n\x00", "d 1 7 1\n", "x\n\n"} {
		f.Add(text)
	}
	sim, err := store.NewSimulation(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(sim.Close)
	q, err := New(Config{DB: sim.Open(store.SimulatedProcess{}), Node: store.Node{ID: "n"}, Workers: 1, Tasks: map[string]Task{"t": {Run: func(context.Context, *Job) error { return nil }}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, message string) {
		q.hear(message)
		q.board.mu.Lock()
		defer q.board.mu.Unlock()
		if len(q.board.owned) > 0 || len(q.board.entries) > 0 || len(q.board.running) > 0 {
			t.Fatalf("%q gave the node %d shares and %d jobs", message, len(q.board.owned), len(q.board.entries))
		}
	})
}
