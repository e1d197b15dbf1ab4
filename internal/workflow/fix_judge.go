package workflow

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/repair"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// judge checks a proposal. An error refuses it: it does not deploy, declares
// something else than the script that failed, names calls that the workflow has
// no right to, or still fails. A doubt leaves it to a person: it reads what was
// not read, so that nothing is known about it, or runs that went well would do
// something else.
func (e *session) judge(ctx context.Context, v *view, r recordedRun, source string) (doubt string, err error) {
	config, program, err := Inspect(ctx, e.cfg.Trials, r.version.Filename, source)
	if err != nil {
		return "", err
	}
	if err := sameDeclaration(v.config, config); err != nil {
		return "", err
	}
	may, err := e.declareBase(ctx, r.version)
	if err != nil {
		return "", err
	}
	for _, c := range repair.CallsOf(program.JavaScript()) {
		if err := may.check(c.Tool, c.Method); err != nil {
			return "", fmt.Errorf("it calls %s.%s, which no version does that a person deployed", c.Tool, c.Method)
		}
	}
	script := proposed{r.version.Filename, source, may}
	replayed, err := e.replayWith(ctx, v.row.ID, script)
	switch {
	case err != nil:
		return "", err
	case replayed.Unknown:
		doubt = "it reads what the run that failed did not read, so that nothing is known about what it would do: " + replayed.Failure
	case replayed.Failure != "":
		return "", fmt.Errorf("the run fails with it too: %s", replayed.Failure)
	case replayed.Then.Call != nil && (replayed.Now.Call == nil || !sameCall(*replayed.Then.Call, *replayed.Now.Call, e.cfg.Tools.Redact)):
		doubt = "the run that failed had made another call"
	}
	good, err := e.judgeGoodRuns(ctx, v, script)
	if doubt == "" {
		doubt = good
	}
	return doubt, err
}

// judgeGoodRuns replays runs that went well, those that made a call among them.
func (e *session) judgeGoodRuns(ctx context.Context, v *view, script proposed) (doubt string, err error) {
	var good []runstore.Run
	err = e.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		called, err := runstore.In(tx).GoodRunsThatCalled(ctx, e.id, v.row.Handler, goodRuns)
		if err != nil {
			return err
		}
		good, err = runstore.In(tx).GoodRuns(ctx, pawl.KindWorkflow, v.row.Lane, v.row.Handler, goodRuns)
		good = append(called, good...)
		return err
	})
	seen := map[string]bool{}
	for _, g := range good {
		if seen[g.ID] || g.HandlerType != v.row.HandlerType {
			continue
		}
		seen[g.ID] = true
		replayed, err := e.replayWith(ctx, g.ID, script)
		switch {
		case err != nil:
			return "", err
		case replayed.Unknown:
			doubt = fmt.Sprintf("it reads what run %s, which went well, did not read: %s", g.ID, replayed.Failure)
		case replayed.Failure != "":
			return "", fmt.Errorf("run %s, which went well, fails with it: %s", g.ID, replayed.Failure)
		case len(replayed.Differences) > 0:
			doubt = fmt.Sprintf("run %s, which went well, would do something else: %s", g.ID, replayed.Differences[0])
		}
	}
	return doubt, err
}

// declareBase returns what a repaired version may call. What the script that
// failed names counts, if a person deployed it, also when that was before rights
// were kept.
func (e *session) declareBase(ctx context.Context, base workflowstore.WorkflowVersion) (may rights, err error) {
	var named []workflowstore.Right
	if !base.Confined {
		program, err := e.cfg.Trials.Compile(ctx, base.Filename, base.Source)
		if err != nil {
			return nil, err
		}
		named = declared(base.Version, program.JavaScript())
	}
	err = e.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.Fence(ctx, e.claim.Fence()); err != nil {
			return err
		}
		if err := workflowstore.In(tx).AddRights(ctx, e.id, named); err != nil {
			return err
		}
		list, err := workflowstore.In(tx).WorkflowRights(ctx, e.id)
		may = rightsOf(list)
		return err
	}, store.Lazy)
	return may, err
}

// sameDeclaration refuses a script that declares anything else than another:
// only the code of handlers may change. It compares what scripts evaluate to.
func sameDeclaration(before, after Config) error {
	if before.Name != after.Name {
		return declares("the name of the workflow", before.Name, after.Name)
	}
	if !reflect.DeepEqual(sorted(before.Topics), sorted(after.Topics)) {
		return declares("its topics", before.Topics, after.Topics)
	}
	if !reflect.DeepEqual(orEmpty(before.Labels), orEmpty(after.Labels)) {
		return declares("its labels", before.Labels, after.Labels)
	}
	if !reflect.DeepEqual(orEmpty(before.Keep), orEmpty(after.Keep)) {
		return declares("for how long its history is kept", before.Keep, after.Keep)
	}
	if a, b := terms.ExpectText(before.Expect), terms.ExpectText(after.Expect); a != b {
		return declares("what is expected of it", a, b)
	}
	if !terms.SameNeeds(before.Needs, after.Needs) {
		return declares("what it needs", terms.NeedsWords(before.Needs), terms.NeedsWords(after.Needs))
	}
	if a, b := producerNames(before), producerNames(after); !reflect.DeepEqual(a, b) {
		return declares("its producers", a, b)
	}
	if a, b := consumerNames(before), consumerNames(after); !reflect.DeepEqual(a, b) {
		return declares("its consumers", a, b)
	}
	for i, a := range before.Producers {
		b := after.Producers[i]
		if !reflect.DeepEqual(a.Schedule, b.Schedule) {
			return declares("the schedule of the producer "+quoted(a.Name), a.Schedule, b.Schedule)
		}
		if !sameTopics(a.Publishes, b.Publishes) {
			return declares("what the producer "+quoted(a.Name)+" publishes", a.Publishes, b.Publishes)
		}
	}
	for i, a := range before.Consumers {
		b := after.Consumers[i]
		switch {
		case !sameTopics(a.Subscribe, b.Subscribe):
			return declares("what the consumer "+quoted(a.Name)+" subscribes to", a.Subscribe, b.Subscribe)
		case !sameTopics(a.Publishes, b.Publishes):
			return declares("what the consumer "+quoted(a.Name)+" publishes", a.Publishes, b.Publishes)
		case a.HasMutate != b.HasMutate || a.HasNext != b.HasNext:
			return declares("the phases of the consumer "+quoted(a.Name), phasesOf(a), phasesOf(b))
		}
	}
	return nil
}

func declares(what string, before, after any) error {
	return fmt.Errorf("it changes %s, and only the code of handlers may change: %s was %s", what, cutShown(canonical(asJSON(after))), cutShown(canonical(asJSON(before))))
}

func sorted(list []string) []string {
	out := append([]string{}, list...)
	slices.Sort(out)
	return out
}

func orEmpty(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

func producerNames(c Config) []string {
	out := []string{}
	for _, p := range c.Producers {
		out = append(out, p.Name)
	}
	return out
}

func consumerNames(c Config) []string {
	out := []string{}
	for _, k := range c.Consumers {
		out = append(out, k.Name)
	}
	return out
}

func phasesOf(c Consumer) []string {
	out := []string{"prepare"}
	if c.HasMutate {
		out = append(out, "mutate")
	}
	if c.HasNext {
		out = append(out, "next")
	}
	return out
}
