package web

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// nextInstant is when a schedule comes due.
type nextInstant struct {
	client.NextInstant
	Later bool // others are left out before it
}

// shorten keeps the first instants, and of the others the next days on which
// the clocks change.
func shorten(all []client.NextInstant, first, changes int) (out []nextInstant) {
	seen := first - 1
	for i, one := range all {
		switch {
		case i < first:
			out = append(out, nextInstant{NextInstant: one})
		case one.ClockChange != "" && changes > 0:
			out = append(out, nextInstant{one, i != seen+1})
			seen, changes = i, changes-1
		}
	}
	return out
}

// slotOutcome is what became of a slot: why it was skipped if it was, or else
// its status.
func slotOutcome(status, disposition string) string {
	if disposition != "" && disposition != "fired" {
		return disposition
	}
	return status
}

// backfillView is a backfill with how far it has come.
type backfillView struct{ client.Backfill }

// Ended is how many slots of the plan are over. Those that were found to have
// run meanwhile are begun, and have no slot of their own.
func (b backfillView) Ended() int { return max(0, b.Begun-b.Counts.Pending-b.Counts.Running) }

// Percent is how much of the plan is over.
func (b backfillView) Percent() int {
	if b.Total == 0 {
		return 100
	}
	return 100 * b.Ended() / b.Total
}

// grantView is a grant with what it is about.
type grantView struct {
	client.Grant
	Schedules []schedulestore.Schedule `json:"-"` // that run under it, the first ones
}

// Graphs are the graphs that the scopes name.
func (g grantView) Graphs() []string {
	out := make([]string, len(g.Scopes))
	for i, scope := range g.Scopes {
		out[i] = strings.TrimPrefix(scope, grant.ScopeFor(""))
	}
	return out
}

// Over reports whether nothing may run under the grant any more.
func (g grantView) Over(now time.Time) bool {
	return !g.RevokedAt.IsZero() || !g.ExpiresAt.IsZero() && !g.ExpiresAt.After(now)
}

// questionText is the question if it is a plain text, and empty otherwise.
func questionText(q *client.RunQuestion) string {
	var text string
	if json.Unmarshal(q.Question, &text) == nil {
		return text
	}
	var in struct {
		Question string `json:"question"`
		Title    string `json:"title"`
	}
	_ = json.Unmarshal(q.Question, &in) // what has neither is shown as it is
	if in.Question != "" {
		return in.Question
	}
	return in.Title
}

// isOpen reports whether nobody answered yet.
func isOpen(q *client.RunQuestion) bool { return !given(q.Answer) }

// followSchedule is what a page about a schedule follows, see Pulse.
func followSchedule(id string) string { return string(pawl.KindSchedule) + ":" + id }

func isOfSchedule(kind string) bool { return kind == string(pawl.KindSchedule) }

func (s *Site) hasSchedules() bool {
	_, ok := s.cfg.Kinds.Get(pawl.KindSchedule)
	return ok
}

// waitingGraphs asks for runs of graphs that wait for a person.
func waitingGraphs(limit int) url.Values {
	return url.Values{"kind": {string(pawl.KindSchedule)}, "status": {string(pawl.StatusPausedApproval)}, "limit": {strconv.Itoa(limit)}}
}
