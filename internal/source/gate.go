package source

import (
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
)

// The names of the gates, in the order they are told.
const (
	gateWanted   = "wanted"
	gateSchedule = "schedule"
	gateInFlight = "in_flight"
	gateQuota    = "quota"
	gateRetry    = "retry"
	gateWorker   = "worker"
)

// verdict is what the gates say together.
type verdict struct {
	open  bool
	at    time.Time // when to look again; zero: when somebody changes something
	gates []lane.Gate
}

// evaluate asks every gate (B-23). It is pure, and it is what both the lane
// and the views go by.
func (v *view) evaluate() verdict {
	d := verdict{open: true, gates: []lane.Gate{
		v.gateWanted(), v.gateSchedule(), v.gateInFlight(), v.gateQuota(), v.gateRetry(), {Name: gateWorker, Open: !v.there.Missing, Text: v.there.Sentence()}, lane.HaltGate(v.there),
	}}
	for _, g := range d.gates {
		if g.Open {
			continue
		}
		d.open = false
		switch {
		case g.Until.IsZero():
			return verdict{gates: d.gates}
		case g.Until.After(d.at):
			d.at = g.Until
		}
	}
	return d
}

func (v *view) gateWanted() lane.Gate {
	switch {
	case !v.source.DeletingAt.IsZero():
		return lane.Gate{Name: gateWanted, Text: "It is being deleted."}
	case v.paused():
		g := lane.Gate{Name: gateWanted, Text: "It has been paused since " + pawl.FormatTime(v.source.PausedAt) + "."}
		if !v.known.Pause.At.IsZero() {
			g.Text = lane.PausedWords(v.known.Pause)
		}
		return g
	case !v.wanted():
		return lane.Gate{Name: gateWanted, Text: fmt.Sprintf("Its status is %q, and only active sources run.", v.source.Status)}
	case v.newest.Status != pawl.StatusActive && v.row.ID != "" && run.Halts(v.newest, v.exhausted()):
		return lane.Gate{Name: gateWanted, Text: "It is halted: " + v.sentence(v.issue())}
	}
	return lane.Gate{Name: gateWanted, Open: true, Text: "It is enabled."}
}

func (v *view) gateSchedule() lane.Gate {
	g := lane.Gate{Name: gateSchedule, Until: v.dueAt()}
	switch {
	case g.Until.IsZero():
		g.Text = "Its schedule has ended."
	case g.Until.After(v.now):
		g.Text = "It is due at " + pawl.FormatTime(g.Until) + v.lastWords() + v.leftOutWords()
	default:
		g.Open, g.Text = true, v.dueWords()
	}
	return g
}

func (v *view) lastWords() string {
	if v.lastRun().IsZero() {
		return "; it has never run."
	}
	return "; the last run was at " + pawl.FormatTime(v.lastRun()) + "."
}

// leftOutWords tells of the time before the next one, if that is left out.
func (v *view) leftOutWords() string {
	if at, why, out := v.times.LeftOut(v.now); out && !v.times.Floats() {
		return " " + pawl.FormatTime(at) + " is left out: " + why + "."
	}
	return ""
}

func (v *view) dueWords() string {
	switch {
	case !v.state.RequestedAt.IsZero():
		return "A run was requested at " + pawl.FormatTime(v.state.RequestedAt) + "."
	case v.row.Status == pawl.StatusActive:
		return "It was due and is being fetched now."
	case v.unfinished():
		return "The fetch that began at " + pawl.FormatTime(v.state.LastAttemptAt) + " did not succeed."
	case v.lastRun().IsZero():
		return "It has never run."
	}
	return "It has been due since " + pawl.FormatTime(v.dueAt()) + "."
}

// gateInFlight looks at the ledger: whoever holds the job of the source asks
// only once nothing of it runs.
func (v *view) gateInFlight() lane.Gate {
	if v.row.Status == pawl.StatusActive {
		return lane.Gate{Name: gateInFlight, Text: fmt.Sprintf("Run %s has been active since %s.", v.row.ID, pawl.FormatTime(v.row.CreatedAt))}
	}
	return lane.Gate{Name: gateInFlight, Open: true, Text: "No run is active."}
}

func (v *view) gateQuota() lane.Gate {
	a, host := v.allowance, v.def.Host()
	asked := host + " asked not to be called before " + pawl.FormatTime(a.BlockedUntil)
	spent := fmt.Sprintf("the limit set here, %s to %s, is used up until %s", calls(a.Limit), host, pawl.FormatTime(v.quotaUntil))
	switch blocked := a.BlockedUntil.After(v.now); {
	case !v.quotaOpen && blocked && v.quotaUntil.After(a.BlockedUntil):
		return lane.Gate{Name: gateQuota, Until: v.quotaUntil, Text: asked + ", and " + spent + "."}
	case !v.quotaOpen && blocked:
		return lane.Gate{Name: gateQuota, Until: v.quotaUntil, Text: asked + "."}
	case !v.quotaOpen:
		return lane.Gate{Name: gateQuota, Until: v.quotaUntil, Text: strings.ToUpper(spent[:1]) + spent[1:] + "."}
	case a.Limited && a.Left == 1:
		return lane.Gate{Name: gateQuota, Open: true, Text: fmt.Sprintf("1 of %s to %s is left.", calls(a.Limit), host)}
	case a.Limited:
		return lane.Gate{Name: gateQuota, Open: true, Text: fmt.Sprintf("%d of %s to %s are left.", a.Left, calls(a.Limit), host)}
	}
	return lane.Gate{Name: gateQuota, Open: true, Text: v.def.Host() + " has no limit here."}
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

func (v *view) gateRetry() lane.Gate {
	budget := v.def.Budget()
	if v.retry.Ready(budget, v.now) {
		text := "It is not backing off."
		if v.retry.Count > 0 {
			text = fmt.Sprintf("It failed %d of %d times in this period and may be tried again.", v.retry.Count, budget.MaxRetries)
		}
		return lane.Gate{Name: gateRetry, Open: true, Text: text}
	}
	g := lane.Gate{Name: gateRetry, Until: v.retry.NextAt}
	if v.retry.Exhausted(budget) {
		if end := v.retry.PeriodStart.Add(budget.Period); end.After(g.Until) {
			g.Until = end
		}
		g.Text = fmt.Sprintf("%s of this period failed; a new period begins at %s.", allAttempts(budget.MaxRetries), pawl.FormatTime(g.Until))
		return g
	}
	g.Text = fmt.Sprintf("It is backing off after failure %d of %d until %s.", v.retry.Count, budget.MaxRetries, pawl.FormatTime(g.Until))
	return g
}
