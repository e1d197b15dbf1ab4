package workflow

import (
	"testing"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

func takesMail() Consumer { return Consumer{Name: "take", Subscribe: []string{"mail", "post"}} }

// freshLane has built its flags for a workflow of some consumers.
func freshLane(pending map[string]int64, seqs map[string]int64, consumers ...Consumer) *memory {
	l := &memory{revision: -1}
	l.rebuild(&view{config: Config{Consumers: consumers}, seqs: seqs, workflow: workflowstore.Workflow{Revision: 3}}, pending)
	return l
}

// an event makes the consumers of its topic dirty, and no others.
func TestEventMakesItsSubscribersDirty(t *testing.T) {
	other := Consumer{Name: "other", Subscribe: []string{"news"}}
	l := freshLane(nil, map[string]int64{"mail": 4, "post": 2, "news": 9}, takesMail(), other)
	if l.isDirty(takesMail(), map[string]int64{"mail": 4, "post": 2, "news": 9}) {
		t.Error("without an event a consumer is dirty")
	}
	for _, topic := range []string{"mail", "post"} {
		seqs := map[string]int64{"mail": 4, "post": 2, "news": 9}
		seqs[topic]++
		if !l.isDirty(takesMail(), seqs) {
			t.Errorf("an event of %s does not make its consumer dirty", topic)
		}
		if l.isDirty(other, seqs) {
			t.Errorf("an event of %s makes another consumer dirty", topic)
		}
	}
}

// right after a commit the consumer is clean; it is dirty
// again for what came after its prepare began, or if there is more to take.
func TestCommitAcknowledgesWhatPrepareSaw(t *testing.T) {
	c, at := takesMail(), map[string]int64{"mail": 5}
	l := freshLane(map[string]int64{"mail": 1}, at, c)
	if !l.isDirty(c, at) {
		t.Fatal("a consumer with a pending event begins clean")
	}
	l.acknowledge(c, at, false)
	if l.isDirty(c, at) {
		t.Error("it is dirty right after a commit")
	}
	if !l.isDirty(c, map[string]int64{"mail": 6}) {
		t.Error("an event that came after prepare began is forgotten")
	}
	l.acknowledge(c, map[string]int64{"mail": 6}, true)
	if !l.isDirty(c, map[string]int64{"mail": 6}) {
		t.Error("it is clean although there is more to take")
	}
}

// lesson 18: flags built anew say dirty for consumers with
// pending events of their topics, and only for those.
func TestRebuiltFlagsFollowFromPendingEvents(t *testing.T) {
	other := Consumer{Name: "other", Subscribe: []string{"news"}}
	seqs := map[string]int64{"mail": 5, "news": 9, "abandoned": 77}
	l := freshLane(map[string]int64{"post": 1, "abandoned": 77}, seqs, takesMail(), other)
	if !l.isDirty(takesMail(), seqs) {
		t.Error("a consumer with a pending event is clean after a restart")
	}
	if l.isDirty(other, seqs) {
		t.Error("a consumer without pending events is dirty after a restart")
	}
	if l.revision != 3 {
		t.Errorf("the flags are those of revision %d, not 3", l.revision)
	}
}

// a consumer that nobody knows is not dirty.
func TestUnknownConsumerIsNotDirty(t *testing.T) {
	l := freshLane(nil, nil)
	if l.isDirty(takesMail(), map[string]int64{"mail": 1}) {
		t.Error("an unknown consumer is dirty")
	}
	if (&memory{}).isDirty(takesMail(), map[string]int64{"mail": 1}) {
		t.Error("a consumer is dirty before any flags are built")
	}
}

// the memory of a lane belongs to one owner and one workflow; a new
// owner begins with none, and so does whoever comes after it was forgotten.
func TestMemoryOfALaneBelongsToItsOwner(t *testing.T) {
	s := &Service{memories: map[string]*memory{}}
	first := s.memoryOf("w", store.Fence{Node: "n", Epoch: 1})
	first.inRow = 7
	if got := s.memoryOf("w", store.Fence{Node: "n", Epoch: 1}); got != first {
		t.Error("the owner does not find its own memory")
	}
	if got := s.memoryOf("x", store.Fence{Node: "n", Epoch: 1}); got.inRow != 0 {
		t.Error("two workflows share their memory")
	}
	if got := s.memoryOf("w", store.Fence{Node: "n", Epoch: 2}); got.inRow != 0 || got.revision != -1 {
		t.Error("a new owner finds the memory of the old one")
	}
	second := s.memoryOf("w", store.Fence{Node: "n", Epoch: 2})
	s.forget("w")
	if got := s.memoryOf("w", store.Fence{Node: "n", Epoch: 2}); got == second {
		t.Error("a forgotten lane is remembered")
	}
}
