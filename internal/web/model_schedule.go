package web

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/grant"
)

// What the API answers about schedules, grants and money, as far as pages show
// it.

type scheduleAnswer struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	GrantID   string            `json:"executionGrantId"`
	GraphID   string            `json:"graphId"`
	Input     json.RawMessage   `json:"input"`
	Cron      string            `json:"cron"`
	Timezone  string            `json:"timezone"`
	Policy    string            `json:"concurrencyPolicy"`
	Enabled   bool              `json:"enabled"`
	Labels    map[string]string `json:"labels"`
	LastRunAt time.Time         `json:"lastRunAt"`
	CreatedAt time.Time         `json:"createdAt"`
	UpdatedAt time.Time         `json:"updatedAt"`
}

// nextAnswer is when a schedule comes due.
type nextAnswer struct {
	Items []nextInstant `json:"items"`
}

type nextInstant struct {
	At          time.Time `json:"at"`
	ClockChange string    `json:"clockChange"` // what the clocks do on that day; mostly empty

	Later bool `json:"-"` // others are left out before it
}

// shorten keeps the first instants, and of the others the next days on which
// the clocks change.
func (n *nextAnswer) shorten(first, changes int) {
	if len(n.Items) <= first {
		return
	}
	later := n.Items[first:]
	n.Items = n.Items[:first:first]
	seen := -1
	for i, one := range later {
		if one.ClockChange == "" || changes == 0 {
			continue
		}
		one.Later = i != seen+1
		seen, changes = i, changes-1
		n.Items = append(n.Items, one)
	}
}

type slotAnswer struct {
	ID            string       `json:"id"`
	RunID         string       `json:"runId"`
	ScheduledFor  time.Time    `json:"scheduledFor"`
	StartedAt     time.Time    `json:"startedAt"`
	CompletedAt   time.Time    `json:"completedAt"`
	Status        string       `json:"status"`
	Disposition   string       `json:"disposition"`
	Attempts      int          `json:"attemptCount"`
	Error         *errorAnswer `json:"error"`
	Note          string       `json:"note"`
	Cost          pawl.USD     `json:"costUsd"`
	Trigger       string       `json:"trigger"`
	BackfillID    string       `json:"backfillId"`
	CoalescedInto time.Time    `json:"coalescedInto"`
}

// Became is what became of a slot: why it was passed over if it was, or else
// its status.
func (s slotAnswer) Became() string {
	if s.Disposition != "" && s.Disposition != "fired" {
		return s.Disposition
	}
	return s.Status
}

type backfillAnswer struct {
	ID         string    `json:"id"`
	ScheduleID string    `json:"scheduleId"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	Hash       string    `json:"hash"`
	State      string    `json:"state"`
	PerMinute  int       `json:"perMinute"`
	Estimate   *pawl.USD `json:"estimateUsd"`
	Total      int       `json:"total"`
	Skipped    int       `json:"skipped"`
	Begun      int       `json:"begun"`
	Counts     struct {
		Pending int `json:"pending"`
		Running int `json:"running"`
		Success int `json:"success"`
		Error   int `json:"error"`
		Skipped int `json:"skipped"`
	} `json:"counts"`
	CreatedBy   string    `json:"createdBy"`
	CreatedAt   time.Time `json:"createdAt"`
	ConfirmedBy string    `json:"confirmedBy"`
	Before      int       `json:"before"`  // slots that lie before the schedule was made
	GrantID     string    `json:"grantId"` // empty: that of the schedule
	Uncovered   []struct {
		GraphID string `json:"graphId"`
		Slots   int    `json:"slots"`
		Message string `json:"message"` // why
	} `json:"uncovered"` // what the grant does not allow, by graph
	Slots []struct {
		At      time.Time `json:"at"`
		GraphID string    `json:"graphId"`
		Was     string    `json:"was"`
	} `json:"slots"`
}

// Ended is how many slots of the plan are over. Those that were found to have
// run meanwhile are begun, and have no slot of their own.
func (b backfillAnswer) Ended() int { return max(0, b.Begun-b.Counts.Pending-b.Counts.Running) }

// Percent is how much of the plan is over.
func (b backfillAnswer) Percent() int {
	if b.Total == 0 {
		return 100
	}
	return 100 * b.Ended() / b.Total
}

type grantAnswer struct {
	ID        string   `json:"id"`
	AccountID string   `json:"billingAccountId"`
	Scopes    []string `json:"scopes"`
	Caps      struct {
		USDPerDay  *pawl.USD `json:"usdPerDay"`
		USDPerRun  *pawl.USD `json:"usdPerRun"`
		RunsPerDay *int      `json:"runsPerDay"`
	} `json:"caps"`
	Automatic bool      `json:"automatic"`
	ExpiresAt time.Time `json:"expiresAt"`
	RevokedAt time.Time `json:"revokedAt"`
	CreatedAt time.Time `json:"createdAt"`
}

// Graphs are the graphs that the scopes name.
func (g grantAnswer) Graphs() []string {
	out := make([]string, len(g.Scopes))
	for i, scope := range g.Scopes {
		out[i] = strings.TrimPrefix(scope, grant.ScopeFor(""))
	}
	return out
}

// Over reports whether nothing may run under the grant any more.
func (g grantAnswer) Over(now time.Time) bool {
	return !g.RevokedAt.IsZero() || !g.ExpiresAt.IsZero() && !g.ExpiresAt.After(now)
}

type accountAnswer struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Balance  *pawl.USD `json:"balanceUsd"`
	Reserved pawl.USD  `json:"reservedUsd"`
	Days     []struct {
		Day      string   `json:"day"`
		Amount   pawl.USD `json:"amountUsd"`
		Receipts int      `json:"receipts"`
	} `json:"days"`
}

type receiptAnswer struct {
	ID           string    `json:"id"`
	GrantID      string    `json:"grantId"`
	ScheduleID   string    `json:"scheduleId"`
	RunID        string    `json:"runId"`
	Attempt      int       `json:"attempt"`
	System       string    `json:"sourceSystem"`
	Executor     string    `json:"executor"`
	Model        string    `json:"model"`
	InputTokens  int       `json:"inputTokens"`
	OutputTokens int       `json:"outputTokens"`
	Amount       pawl.USD  `json:"amountUsd"`
	CreatedAt    time.Time `json:"createdAt"`
}

// questionAnswer is what a graph asks a person.
type questionAnswer struct {
	Question   json.RawMessage `json:"question"`
	Answer     json.RawMessage `json:"answer"`
	AnsweredBy string          `json:"answeredBy"`
	AskedAt    time.Time       `json:"askedAt"`
	AnsweredAt time.Time       `json:"answeredAt"`
}

// Text is the question if it is a plain text, and empty otherwise.
func (q questionAnswer) Text() string {
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

// Open reports whether nobody answered yet.
func (q questionAnswer) Open() bool { return !given(q.Answer) }

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
