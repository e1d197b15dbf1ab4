package runstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Lane is the row of a lane: who it is, and how it stands while no run of it is
// active. The room of its kind inserts and removes it with the lane, so that it
// is always there; its kind writes the rest when it changes.
type Lane struct {
	Kind  pawl.Kind
	Lane  string // that of its runs; of a schedule the id
	ID    string
	Name  string
	Owner string // empty: everybody's
	State string // Running, Idle, Needs attention or Stopped
	Keep  string // for how long its things are kept, as retention.Parse reads it; empty: as all others

	Expect   string // what is expected of it, as JSON; empty: nothing
	Expected string // how that stood when it was last judged, as JSON
	Attention
	Pause Pause
}

// Pause is what a person said when they paused a lane. The zero value is that nobody
// did, or that nobody knows.
type Pause struct {
	At    time.Time
	Until time.Time // when it continues by itself; zero: when somebody resumes it
	By    string
	Note  string
}

// Attention is what people were told that a lane needs them for. The zero value
// is that nothing is the matter.
type Attention struct {
	Cause string // run and issue: another one is told again
	Issue string
	Text  string
	Since time.Time
}

const laneColumns = "l.kind, l.lane, l.id, l.name, l.owner, l.state, l.keep, l.expect, l.expected, l.cause, l.issue, l.text, l.since, l.paused_at, l.paused_until, l.paused_by, l.paused_note"

func scanLane(row store.Scanner) (l Lane, err error) {
	var since, paused, until *int64
	err = row.Scan(&l.Kind, &l.Lane, &l.ID, &l.Name, &l.Owner, &l.State, &l.Keep, &l.Expect, &l.Expected, &l.Cause, &l.Issue, &l.Text, &since,
		&paused, &until, &l.Pause.By, &l.Pause.Note)
	l.Since, l.Pause.At, l.Pause.Until = store.FromNullMillis(since), store.FromNullMillis(paused), store.FromNullMillis(until)
	return l, err
}

// InsertLane adds the row of a lane.
func (tx Tx) InsertLane(ctx context.Context, l Lane) error {
	_, err := tx.Exec(ctx, `insert into lanes (kind, lane, id, name, owner, state, cause, issue, text) values ($1, $2, $3, $4, $5, $6, '', '', '')`,
		l.Kind, l.Lane, l.ID, l.Name, l.Owner, l.State)
	if err != nil {
		return fmt.Errorf("insert lane: %w", err)
	}
	return nil
}

// RenameLane gives a lane another name.
func (tx Tx) RenameLane(ctx context.Context, kind pawl.Kind, lane, name string) error {
	if _, err := tx.Exec(ctx, `update lanes set name = $3 where kind = $1 and lane = $2`, kind, lane, name); err != nil {
		return fmt.Errorf("rename lane: %w", err)
	}
	return nil
}

// SetKeep notes for how long the things of a lane are kept.
func (tx Tx) SetKeep(ctx context.Context, kind pawl.Kind, lane, keep string) error {
	if _, err := tx.Exec(ctx, `update lanes set keep = $3 where kind = $1 and lane = $2 and keep <> $3`, kind, lane, keep); err != nil {
		return fmt.Errorf("note what a lane keeps: %w", err)
	}
	return nil
}

// DropLane removes the row of a lane that is gone.
func (tx Tx) DropLane(ctx context.Context, kind pawl.Kind, lane string) error {
	if _, err := tx.Exec(ctx, `delete from lanes where kind = $1 and lane = $2`, kind, lane); err != nil {
		return fmt.Errorf("drop lane: %w", err)
	}
	return nil
}

// HoldLane keeps others from changing the row of a lane until the transaction ends.
func (tx Tx) HoldLane(ctx context.Context, kind pawl.Kind, lane string) error {
	rows, err := tx.Query(ctx, `select lane from lanes where kind = $1 and lane = $2`+tx.ForUpdate(), kind, lane)
	_, err = store.ScanAll(rows, err, "hold lane", store.ScanText)
	return err
}

// GetLane reads the row of a lane.
func (tx Tx) GetLane(ctx context.Context, kind pawl.Kind, lane string) (Lane, error) {
	l, err := scanLane(tx.QueryRow(ctx, `select `+laneColumns+` from lanes l where kind = $1 and lane = $2`, kind, lane))
	if errors.Is(err, store.ErrNoRow) {
		return Lane{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "read lane", Msg: fmt.Sprintf("there is no %s %q", kind, lane)}
	}
	if err != nil {
		return Lane{}, fmt.Errorf("read lane: %w", err)
	}
	return l, nil
}

// SetLane writes how a lane stands; one that is gone stays so.
func (tx Tx) SetLane(ctx context.Context, l Lane) error {
	_, err := tx.Exec(ctx, `update lanes set state = $3, cause = $4, issue = $5, text = $6, since = $7 where kind = $1 and lane = $2`,
		l.Kind, l.Lane, l.State, l.Cause, l.Issue, l.Text, store.NullMillis(l.Since))
	if err != nil {
		return fmt.Errorf("change lane: %w", err)
	}
	return nil
}

// SetPause notes what was said about the pause of a lane; the zero one forgets it.
func (tx Tx) SetPause(ctx context.Context, kind pawl.Kind, lane string, p Pause) error {
	_, err := tx.Exec(ctx, `update lanes set paused_at = $3, paused_until = $4, paused_by = $5, paused_note = $6 where kind = $1 and lane = $2`,
		kind, lane, store.NullMillis(p.At), store.NullMillis(p.Until), p.By, p.Note)
	if err != nil {
		return fmt.Errorf("note the pause of a lane: %w", err)
	}
	return nil
}

// LaneFilter picks lanes; empty fields pick all.
type LaneFilter struct {
	Owner string
	Text  string // part of the name
	State string // Running, Idle, Needs attention or Stopped
}

// runsNow is the condition that a lane of a kind is at work, whatever its row
// says of its rest. There are as few active runs as there is work under way.
func runsNow(kind pawl.Kind) string {
	if kind == pawl.KindSchedule {
		// Slots that run beside each other have lanes of their own, which begin
		// with the id. One that asks a person needs that person meanwhile, and
		// one that runs goes on when its schedule is switched off.
		return `(not (l.state = 'Needs attention' and l.issue = 'approval')
			and l.lane in (select substr(r.lane, 1, 36) from runs r where r.kind = 'schedule' and r.status = 'active'))`
	}
	if kind == pawl.KindWorkflow {
		// A partition that needs a person does so whatever the others do.
		return `(l.state <> 'Stopped' and not (l.state = 'Needs attention' and substr(l.cause, 1, 10) = '` + PartCause + `')
			and l.lane in (select case when substr(r.lane, length(r.lane) - 24, 1) = '/' then substr(r.lane, 1, length(r.lane) - 25) else r.lane end
				from runs r where r.kind = 'workflow' and r.status = 'active'))`
	}
	return `(l.state <> 'Stopped' and l.lane in (select r.lane from runs r where r.kind = '` + string(kind) + `' and r.status = 'active'))`
}

// FindLanes reads up to limit lanes of a kind by name, those after the given
// place, with the columns of a table that is joined to them as t.
func (tx Tx) FindLanes(ctx context.Context, kind pawl.Kind, table, columns string, f LaneFilter, afterName, afterLane string, limit int) (store.Rows, error) {
	c := store.Where{}
	c.Add("l.kind = ?", kind)
	if afterLane == "" { // where names are unique
		c.Add("l.name > ?", afterName)
	} else {
		c.Add("(l.name, l.lane) > (?, ?)", afterName, afterLane)
	}
	if f.Owner != "" {
		c.Add("l.owner = ?", f.Owner)
	}
	if f.Text != "" {
		c.Add(`lower(l.name) like ? escape '\'`, "%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(f.Text))+"%")
	}
	switch f.State {
	case "":
	case "Running":
		c.Add("(l.state = ? or "+runsNow(kind)+")", f.State)
	default:
		c.Add("l.state = ? and not "+runsNow(kind), f.State)
	}
	where := c.String()
	return tx.Query(ctx, `select `+columns+` from lanes l join `+table+` t on t.id = l.id where `+where+` order by l.name, l.lane`+c.Limit(limit), c.Args...)
}

// CountLanes counts the lanes of a kind by their state. An empty owner is
// everybody.
func (tx Tx) CountLanes(ctx context.Context, kind pawl.Kind, owner string) (map[string]int, error) {
	type count struct {
		state string
		n     int
	}
	rows, err := tx.Query(ctx, `select state, count(*) from (select case when `+runsNow(kind)+` then 'Running' else l.state end as state
		from lanes l where l.kind = $1 and (l.owner = $2 or $2 = '')) as now group by state`, kind, owner)
	list, err := store.ScanAll(rows, err, "count lanes", func(row store.Scanner) (c count, err error) {
		return c, row.Scan(&c.state, &c.n)
	})
	out := map[string]int{}
	for _, c := range list {
		out[c.state] = c.n
	}
	return out, err
}

// CountWaiting counts the lanes of a kind that are said to run and have no active
// run, because they wait for another attempt. An empty owner is everybody.
func (tx Tx) CountWaiting(ctx context.Context, kind pawl.Kind, owner string) (n int, err error) {
	err = tx.QueryRow(ctx, `select count(*) from lanes l where l.kind = $1 and (l.owner = $2 or $2 = '') and l.state = 'Running' and not `+runsNow(kind), kind, owner).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count waiting lanes: %w", err)
	}
	return n, nil
}
