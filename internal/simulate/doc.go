// Package simulate lives histories of whole clusters in one process and in
// simulated time. It has tests only.
//
// A history is decided by its seed: how many nodes there are, whether they share
// a database or follow each other on a file, which kinds have lanes, what happens
// to them, when, and how long every answer takes. A node is what internal/server
// makes of the parts (queue, ledger, workflows, sources, schedules, execution
// service), on a handle of store.Simulation; scripts are Go functions, and
// everything outside is an actor of the history.
//
//	seed ──► plan: steps, each with an instant and chances of its own
//	           │ people, outside, faults
//	           ▼
//	  node a   node b   node c      the real services
//	    │ Step   │        │         latency, lost answer, crash, freeze, ...
//	    └────────┴────────┘
//	      store.Simulation ◄─────── observer: rows, after every step
//	           world ◄───────────── what really happened outside
//
// Time is that of a bubble of testing/synctest: it stands still while anything
// computes. Every transaction takes a time that the seed decides, so the order of
// transactions is the seed's and not the scheduler's.
//
// After every step, and in the end when all is made well, the observer holds the
// rows and the world against what may be true; see check_test.go. A history that
// fails is shortened: steps are left out as long as it fails.
package simulate
