package workflow

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/partitionstore"
)

// By what the events of a life with partitions are apart.
var aparts = []string{"parity", "parity", "messageId", "payload", ""}

func (l *life) drawApart() string {
	if l.board == nil {
		return ""
	}
	return rapid.SampledFrom(aparts).Draw(l.t, "apart")
}

// part gives the first consumer its partitions.
func (l *life) part(d *definition, e edition) {
	switch {
	case l.board == nil || e.apart == "none":
		return
	case e.apart == "" || e.apart == "parity":
		d.handlers["consumers.order.partition"] = func(_ *goCtx, args []json.RawMessage) any {
			var event scriptEvent
			if err := json.Unmarshal(args[0], &event); err != nil {
				panic(err)
			}
			return []string{"even", "odd"}[event.MessageID[len(event.MessageID)-1]%2]
		}
	default:
		d.config.Consumers[0].Partition = e.apart
	}
	d.config.Consumers[0].PartitionLimit = 2
}

// crash crashes somewhere.
func (l *life) crash() {
	if l.board == nil {
		l.k.crashAt(l.w, rapid.SampledFrom(livePlaces).Draw(l.t, "place"), rapid.IntRange(1, 2).Draw(l.t, "time"))
		return
	}
	l.board.crashAt(rapid.SampledFrom(slices.Concat(livePlaces, partPlaces)).Draw(l.t, "place"), rapid.IntRange(1, 3).Draw(l.t, "time"))
	l.looked()
}

// looked lets a new process look at the workflow, as every one does.
func (l *life) looked() {
	if l.board != nil {
		l.k.write(func(ctx context.Context, tx *store.Tx) error { return l.k.s.arm(ctx, tx, l.w, tx.Now) })
	}
}

// session is one session of a lane that is due.
func (l *life) session(ctx context.Context) (time.Time, error) {
	if l.board == nil {
		return l.k.s.work(ctx, l.k, l.w.ID)
	}
	list := l.board.now()
	if len(list) == 0 {
		return time.Time{}, nil
	}
	p := l.board.of[rapid.SampledFrom(list).Draw(l.t, "lane")]
	return l.k.s.workOn(ctx, l.k, p.Workflow, p.Partition)
}

// workAll works on all lanes until nothing is due. If that leaves all of them idle, no
// event is pending.
func (l *life) workAll() (until time.Time) {
	l.board.run()
	for _, at := range l.board.due {
		until = earlier(until, at)
	}
	l.sure = true
	l.k.checkRow(l.w, "work on all lanes")
	if l.k.workflow(l.w.Name).Desired != desiredActive || l.newest().ID != "" && !run.Terminal(l.newest().Status) {
		return until
	}
	rejected := false
	l.k.read(func(ctx context.Context, tx *store.Tx) error {
		open, err := partitionstore.In(tx).Open(ctx, l.w.ID, "", 100)
		rejected = slices.ContainsFunc(open, func(p partitionstore.Partition) bool { return p.RejectedRun != "" })
		return err
	})
	for _, topic := range []string{"in", "out"} {
		for id, status := range l.k.statuses(l.w, topic) {
			if status == eventstore.EventPending && !rejected {
				l.k.t.Fatalf("all lanes rest until %v, and event %s is pending\n%s", until, id, l.story())
			}
		}
	}
	return until
}
