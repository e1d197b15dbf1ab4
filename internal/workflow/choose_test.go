package workflow

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
)

// noon is an instant for tests of pure code.
func noon() time.Time { return time.Date(2025, time.June, 1, 12, 0, 0, 0, time.UTC) }

// sketch is a view and a lane in short: the consumers a and b, of the topics of
// their names, and the producers p and q.
type sketch struct {
	seqs   map[string]int64         // of topics; the consumers have seen none
	wakes  map[string]time.Duration // of consumers, from now
	next   map[string]time.Duration // of producers, from now; an hour if absent
	asked  []string                 // producers
	oldest map[string]int64         // by topic
	inRow  int
}

func (s sketch) view() (*view, *memory) {
	v := &view{
		now: noon(), workflow: workflowstore.Workflow{Desired: desiredActive, Version: "1"}, seqs: s.seqs, wakes: map[string]time.Time{},
		config: Config{
			Topics:    []string{"a", "b"},
			Consumers: []Consumer{{Name: "b", Subscribe: []string{"b"}}, {Name: "a", Subscribe: []string{"a"}}},
			Producers: []Producer{{Name: "q"}, {Name: "p"}},
		},
	}
	for name, d := range s.wakes {
		v.wakes[name] = v.now.Add(d)
	}
	for _, name := range []string{"p", "q"} {
		d, ok := s.next[name]
		if !ok {
			d = time.Hour
		}
		row := workflowstore.ProducerSchedule{Producer: name, NextRunAt: v.now.Add(d)}
		if slices.Contains(s.asked, name) {
			row.RequestedAt = v.now
		}
		v.schedules = append(v.schedules, row)
	}
	slices.SortFunc(v.schedules, func(a, b workflowstore.ProducerSchedule) int { return a.NextRunAt.Compare(b.NextRunAt) })
	l := &memory{inRow: s.inRow, marked: map[string]bool{}, seen: map[string]map[string]int64{"a": {}, "b": {}}}
	return v, l
}

func (s sketch) choose(t interface{ Fatal(...any) }) step {
	v, l := s.view()
	st, err := choose(v, l, s.age)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func (s sketch) age(topics []string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, topic := range topics {
		if age := s.oldest[topic]; age != 0 {
			out[topic] = age
		}
	}
	return out, nil
}

// who goes next, and why.
func TestChooserOrdersHandlers(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		sketch
		want string // handler and trigger
	}{
		"nothing is due": {sketch{}, " "},
		"an event":       {sketch{seqs: map[string]int64{"a": 1}}, "a event"},
		"the older event, not the first consumer":   {sketch{seqs: map[string]int64{"a": 1, "b": 1}, oldest: map[string]int64{"a": 7, "b": 9}}, "a event"},
		"the older event, not the first name":       {sketch{seqs: map[string]int64{"a": 1, "b": 1}, oldest: map[string]int64{"a": 9, "b": 7}}, "b event"},
		"an event before a due wake":                {sketch{seqs: map[string]int64{"b": 1}, wakes: map[string]time.Duration{"a": -ms}, oldest: map[string]int64{"b": 7}}, "b event"},
		"the earlier of two due wakes":              {sketch{wakes: map[string]time.Duration{"a": -ms, "b": -2 * ms}}, "b wake"},
		"of two equal wakes the name":               {sketch{wakes: map[string]time.Duration{"a": -ms, "b": -ms}}, "a wake"},
		"a wake at this very instant":               {sketch{wakes: map[string]time.Duration{"a": 0}}, "a wake"},
		"a wake that is a millisecond off":          {sketch{wakes: map[string]time.Duration{"a": ms}}, " "},
		"a due wake before a producer":              {sketch{wakes: map[string]time.Duration{"a": 0}, next: map[string]time.Duration{"p": -time.Hour}}, "a wake"},
		"an event before a producer":                {sketch{seqs: map[string]int64{"a": 1}, next: map[string]time.Duration{"p": -time.Hour}}, "a event"},
		"an event before a producer that was asked": {sketch{seqs: map[string]int64{"a": 1}, asked: []string{"p"}}, "a event"},
		"a producer at this very instant":           {sketch{next: map[string]time.Duration{"p": 0}}, "p schedule"},
		"a producer that is a millisecond off":      {sketch{next: map[string]time.Duration{"p": ms}}, " "},
		"the producer that is due longer":           {sketch{next: map[string]time.Duration{"p": -ms, "q": -2 * ms}}, "q schedule"},
		"a producer that was asked for":             {sketch{asked: []string{"q"}}, "q manual"},
		"after 99 consumers one more":               {sketch{seqs: map[string]int64{"a": 1}, next: map[string]time.Duration{"p": 0}, inRow: 99}, "a event"},
		"after 100 consumers a due producer":        {sketch{seqs: map[string]int64{"a": 1}, next: map[string]time.Duration{"p": 0}, inRow: 100}, "p schedule"},
		"after 100 consumers, none due, one more":   {sketch{seqs: map[string]int64{"a": 1}, inRow: 100}, "a event"},
	} {
		st := c.choose(t)
		if got := st.handler + " " + st.trigger; got != c.want {
			t.Errorf("%s: %q (%s), want %q", name, got, st.reason, c.want)
		}
		if st.reason == "" {
			t.Errorf("%s: no reason is told", name)
		}
	}
}

// a workflow that is not meant to run starts nothing,
// whatever is due, and asks for no time.
func TestChooserStartsNothingThatIsNotWanted(t *testing.T) {
	for _, desired := range []string{desiredPaused, desiredArchived} {
		v, l := sketch{seqs: map[string]int64{"a": 1}, wakes: map[string]time.Duration{"a": 0}, next: map[string]time.Duration{"p": 0}, asked: []string{"q"}}.view()
		v.workflow.Desired = desired
		v.row, v.newest = runstore.Run{ID: "r", Status: pawl.StatusCrashed}, run.Run{Type: pawl.HandlerProducer, Phase: pawl.PhaseExecuting, Status: pawl.StatusCrashed}
		st, err := choose(v, l, sketch{}.age)
		if err != nil || st.do != actWait || !st.until.IsZero() {
			t.Errorf("%s: %+v (%v)", desired, st, err)
		}
	}
}

// A-62, T-138: with one consumer that has news nobody asks how old events are;
// with several it is asked once for all.
func TestChooserAsksForAgesOnlyWhenConsumersCompete(t *testing.T) {
	for n, s := range []sketch{{}, {seqs: map[string]int64{"a": 1}}, {seqs: map[string]int64{"a": 1, "b": 1}}} {
		asked := 0
		v, l := s.view()
		if _, err := choose(v, l, func([]string) (map[string]int64, error) { asked++; return map[string]int64{}, nil }); err != nil {
			t.Fatal(err)
		}
		if want := []int{0, 0, 1}[n]; asked != want {
			t.Errorf("with %d consumers that have news, ages were asked for %d times, not %d", n, asked, want)
		}
	}
	v, l := sketch{seqs: map[string]int64{"a": 1, "b": 1}}.view()
	broken := errors.New("no answer")
	if _, err := choose(v, l, func([]string) (map[string]int64, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("an unanswered question gives %v", err)
	}
}

// sketches are arbitrary views.
func sketches() *rapid.Generator[sketch] {
	offset := rapid.Map(rapid.IntRange(-5, 5), func(n int) time.Duration { return time.Duration(n) * time.Second })
	return rapid.Custom(func(t *rapid.T) sketch {
		return sketch{
			seqs:   rapid.MapOf(rapid.SampledFrom([]string{"a", "b"}), rapid.Int64Range(0, 2)).Draw(t, "seqs"),
			wakes:  rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "gone"}), offset).Draw(t, "wakes"),
			next:   rapid.MapOf(rapid.SampledFrom([]string{"p", "q"}), offset).Draw(t, "next"),
			asked:  rapid.SliceOfDistinct(rapid.SampledFrom([]string{"p", "q"}), rapid.ID).Draw(t, "asked"),
			oldest: rapid.MapOf(rapid.SampledFrom([]string{"a", "b"}), rapid.Int64Range(0, 3)).Draw(t, "oldest"),
			inRow:  rapid.SampledFrom([]int{0, 99, 100, 101}).Draw(t, "in row"),
		}
	})
}

// the same config, clock, events and flags give the same handler with the
// same reason, and it does not matter in which order the script lists consumers.
func TestChoiceDependsOnNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sketches().Draw(t, "lane")
		want := s.choose(t)
		v, l := s.view()
		slices.Reverse(v.config.Consumers)
		slices.Reverse(v.config.Producers)
		got, err := choose(v, l, s.age)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%+v (%v), before it was %+v", got, err, want)
		}
	})
}

// a lane that waits is woken at the earliest instant at which
// something becomes due, which lies ahead; what is due never waits.
func TestWaitIsUntilTheEarliestInstantAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sketches().Draw(t, "lane")
		v, _ := s.view()
		st := s.choose(t)
		var instants []time.Time
		for _, p := range v.schedules {
			instants = append(instants, p.NextRunAt)
		}
		for _, c := range v.config.Consumers {
			if at, ok := v.wakes[c.Name]; ok {
				instants = append(instants, at)
			}
		}
		earliest := slices.MinFunc(instants, time.Time.Compare)
		switch {
		case st.do == actWait && !st.until.Equal(earliest):
			t.Fatalf("it waits until %v, but the earliest instant is %v", st.until, earliest)
		case st.do == actWait && !st.until.After(v.now):
			t.Fatalf("it waits until %v, which is over", st.until)
		case st.do != actWait && st.handler == "gone":
			t.Fatal("it runs a consumer that is not there")
		}
	})
}

// what became of the newest run comes before
// everything that is due.
func TestNewestRunComesFirst(t *testing.T) {
	busy := sketch{seqs: map[string]int64{"a": 1}, wakes: map[string]time.Duration{"b": 0}, next: map[string]time.Duration{"p": 0}}
	for _, c := range []struct {
		status  pawl.Status
		started bool
		want    action
	}{
		{pawl.StatusActive, true, actRecover},
		{pawl.StatusActive, false, actExecute},
		{pawl.StatusCrashed, true, actRetry},
		{pawl.StatusPausedTransient, true, actWait},
		{pawl.StatusPausedApproval, true, actWait},
		{pawl.StatusFailedLogic, true, actWait},
		{pawl.StatusFailedInternal, true, actWait},
		{pawl.StatusCommitted, true, actConsume},
		{pawl.StatusCancelled, true, actConsume},
	} {
		v, l := busy.view()
		phase := pawl.PhaseExecuting
		if c.status == pawl.StatusCommitted {
			phase = pawl.PhaseCommitted
		}
		v.row = runstore.Run{ID: "r", Handler: "q", HandlerType: pawl.HandlerProducer, Phase: phase, Status: c.status, ScriptVersion: "1"}
		if c.started {
			v.row.StartedAt = v.now
		}
		v.newest = run.Run{ID: "r", Type: pawl.HandlerProducer, Phase: phase, Status: c.status}
		v.retry = run.Retry{Count: 1, NextAt: v.now.Add(time.Second)}
		st, err := choose(v, l, busy.age)
		if err != nil || st.do != c.want {
			t.Errorf("after a run that is %s: %s (%s, %v), want %s", c.status, st.do, st.reason, err, c.want)
		}
		if c.status == pawl.StatusPausedTransient && !st.until.Equal(v.retry.NextAt) {
			t.Errorf("a lane that backs off waits until %v, not %v", st.until, v.retry.NextAt)
		}
	}
}
