package retention

import "time"

// Kind is a kind of rows that an age is set for.
type Kind string

// The closed set of kinds.
const (
	Runs       Kind = "runs"
	IdleRuns   Kind = "idle-runs" // runs that looked and found nothing to do
	Reads      Kind = "reads"     // what runs read
	Logs       Kind = "logs"
	Events     Kind = "events" // from when they were consumed or skipped
	Slots      Kind = "slots"
	Rejects    Kind = "rejects"
	Mutations  Kind = "mutations"
	Audit      Kind = "audit"
	Receipts   Kind = "receipts"
	JobHistory Kind = "job-history"
)

// Forever is the age of what is never removed.
const Forever time.Duration = 0

// GoodRuns is how many runs of a handler that went well, and how many of those that
// made a call, are kept whatever their age: a proposal of another script is tried
// with them.
const GoodRuns = 3

const day = 24 * time.Hour

// rule is what is known of a kind.
type rule struct {
	kind     Kind
	standard time.Duration // kept for, unless somebody says otherwise

	// least is the shortest age that the rules of the program can live with,
	// and why; zero if there is none.
	least time.Duration
	why   string

	ofLanes bool // the rows belong to lanes, so that a definition may say it
}

// rules are all kinds, in the order in which they are told: what refers to others
// is removed before them.
func rules() []rule {
	return []rule{
		{kind: Runs, standard: 90 * day, ofLanes: true},
		{kind: IdleRuns, standard: day, ofLanes: true},
		{kind: Reads, standard: 7 * day, ofLanes: true},
		{kind: Logs, standard: 30 * day, ofLanes: true},
		{kind: Events, standard: 30 * day, ofLanes: true},
		{kind: Slots, standard: 400 * day, least: 2 * day, why: "missed instants and backfills are judged by them", ofLanes: true},
		{kind: Rejects, standard: 30 * day, ofLanes: true},
		{kind: Mutations, standard: 400 * day, least: day, why: "a call is reconciled by them for up to a day", ofLanes: true},
		{kind: Audit, standard: 400 * day, least: day, why: "nobody may do something and have it forgotten at once"},
		{kind: Receipts, standard: Forever, least: 2 * day, why: "limits of a day are judged by them"},
		{kind: JobHistory, standard: 7 * day},
	}
}

// Kinds lists the kinds.
func Kinds() []Kind {
	list := rules()
	out := make([]Kind, len(list))
	for i, r := range list {
		out[i] = r.kind
	}
	return out
}
