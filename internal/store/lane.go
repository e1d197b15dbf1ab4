package store

import (
	"context"
	"fmt"
	"strings"
)

// Lanes are found and counted by the word that people see as far as SQL
// can tell it. What is shown comes from the rules of each kind; these reads only
// find the candidates, so that looking for three among ten thousand does not go
// through all of them.

// LaneFilter picks lanes; empty fields pick all.
type LaneFilter struct {
	Text  string // part of the name
	State string // Running, Idle, Needs attention or Stopped
}

func (f LaneFilter) like() string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(f.Text)) + "%"
}

// newestWord is the word of a lane that is meant to run, by the status of its
// newest run; runs_lane has it.
func newestWord(kind, lane string) string {
	return `case coalesce((select r.status from runs r where r.kind = '` + kind + `' and r.lane = ` + lane + `
		order by r.created_at desc, r.id desc limit 1), '')
		when 'paused:approval' then 'Needs attention' when 'failed:internal' then 'Needs attention'
		when 'active' then 'Running' when 'paused:transient' then 'Running' when 'paused:reconciliation' then 'Running'
		when 'crashed' then 'Running' when 'failed:logic' then 'Running'
		else 'Idle' end`
}

// noted is the condition that a lane needs a person: that was written down when
// it came to rest. It is asked for most and is mostly little.
func noted(kind, lane string) string {
	return lane + ` in (select a.lane from attention a where a.kind = '` + kind + `')`
}

// laneTable is how lanes of one kind are found.
type laneTable struct {
	from   string // with its alias
	there  string // the lane is not deleted
	wanted string // the lane is meant to run
	noted  string // it needs a person
	word   string // an expression; costs a look at the newest run
}

func workflowLanes() laneTable {
	wanted, noted := `l.desired = 'active'`, noted("workflow", "l.lane")
	return laneTable{
		from: "workflows l", there: "l.deleted_at is null", wanted: wanted, noted: wanted + " and " + noted,
		word: `case when l.desired <> 'active' then 'Stopped' when ` + noted + ` then 'Needs attention' else ` + newestWord("workflow", "l.lane") + ` end`,
	}
}

func sourceLanes() laneTable {
	wanted, noted := `(l.status = 'active' and l.paused_at is null)`, noted("source", "l.name")
	return laneTable{
		from: "source_definitions l", there: "true", wanted: wanted, noted: wanted + " and " + noted,
		word: `case when not ` + wanted + ` then 'Stopped' when ` + noted + ` then 'Needs attention' else ` + newestWord("source", "l.name") + ` end`,
	}
}

// scheduleLanes are those of one owner, whose id is the parameter $1; empty is
// everybody's.
func scheduleLanes() laneTable {
	noted := noted("schedule", "l.id")
	runs := `exists (select 1 from schedule_runs s where s.schedule_id = l.id and s.completed_at is null and s.status = 'running')` // as in schedule_runs_open
	asks := `exists (select 1 from attention a where a.kind = 'schedule' and a.lane = l.id and a.issue = 'approval')`
	return laneTable{
		from: "schedules l", there: `l.deleted_at is null and (l.owner_user_id = $1 or $1 = '')`, wanted: `l.enabled = 1`,
		noted: `(` + noted + ` or l.enabled = 0 and l.issue is not null)`,
		word: `case when ` + runs + ` then case when ` + asks + ` then 'Needs attention' else 'Running' end
			when l.enabled = 0 and l.issue is not null then 'Needs attention' when l.enabled = 0 then 'Stopped'
			when ` + noted + ` then 'Needs attention' else 'Idle' end`,
	}
}

// fits is the condition of a word, which is the parameter of this number.
func (t laneTable) fits(word string, parameter int) string {
	switch word {
	case "":
		return fmt.Sprintf(`$%d = ''`, parameter)
	case "Needs attention":
		return fmt.Sprintf(`$%d <> '' and %s`, parameter, t.noted)
	}
	return fmt.Sprintf(`$%d = %s`, parameter, t.word)
}

// FindWorkflows reads up to limit workflows that fit, by name, those after the
// given one.
func (tx *Tx) FindWorkflows(ctx context.Context, f LaneFilter, after string, limit int) ([]Workflow, error) {
	rows, err := tx.findNamed(ctx, workflowLanes(), workflowColumns, f, after, limit)
	return ScanAll(rows, err, "find workflows", scanWorkflow)
}

// FindSources reads up to limit sources that fit, by name, those after the given
// one.
func (tx *Tx) FindSources(ctx context.Context, f LaneFilter, after string, limit int) ([]Source, error) {
	rows, err := tx.findNamed(ctx, sourceLanes(), sourceColumnsOf("l"), f, after, limit)
	return ScanAll(rows, err, "find sources", scanSource)
}

func (tx *Tx) findNamed(ctx context.Context, t laneTable, columns string, f LaneFilter, after string, limit int) (Rows, error) {
	return tx.Query(ctx, `select `+columns+` from `+t.from+` where `+t.there+` and l.name > $1
		and lower(l.name) like $2 escape '\' and `+t.fits(f.State, 3)+` order by l.name limit $4`, after, f.like(), f.State, limit)
}

// FindSchedules reads up to limit schedules of an owner that fit, by name and
// id, those after the given one. An empty owner is everybody.
func (tx *Tx) FindSchedules(ctx context.Context, ownerID string, f LaneFilter, afterName, afterID string, limit int) ([]Schedule, error) {
	t := scheduleLanes()
	rows, err := tx.Query(ctx, `select `+graphScheduleColumns+` from `+t.from+` where `+t.there+` and (l.name, l.id) > ($2, $3)
		and lower(l.name) like $4 escape '\' and `+t.fits(f.State, 5)+` order by l.name, l.id limit $6`, ownerID, afterName, afterID, f.like(), f.State, limit)
	return ScanAll(rows, err, "find schedules", scanGraphSchedule)
}

// CountWorkflows counts the workflows by their word.
func (tx *Tx) CountWorkflows(ctx context.Context) (map[string]int, error) {
	return tx.countLanes(ctx, workflowLanes())
}

// CountSources counts the sources by their word.
func (tx *Tx) CountSources(ctx context.Context) (map[string]int, error) {
	return tx.countLanes(ctx, sourceLanes())
}

// CountSchedules counts the schedules of an owner by their word; an empty owner
// is everybody.
func (tx *Tx) CountSchedules(ctx context.Context, ownerID string) (map[string]int, error) {
	return tx.countLanes(ctx, scheduleLanes(), ownerID)
}

func (tx *Tx) countLanes(ctx context.Context, t laneTable, args ...any) (map[string]int, error) {
	type count struct {
		word string
		n    int
	}
	rows, err := tx.Query(ctx, `select word, count(*) from (select `+t.word+` as word from `+t.from+` where `+t.there+`) as lanes group by word`, args...)
	list, err := ScanAll(rows, err, "count lanes", func(row Scanner) (c count, err error) {
		return c, row.Scan(&c.word, &c.n)
	})
	out := map[string]int{}
	for _, c := range list {
		out[c.word] = c.n
	}
	return out, err
}
