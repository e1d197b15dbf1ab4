package schedulestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Schedule is a graph that runs at its instants.
type Schedule struct {
	ID          string
	Name        string
	OwnerUserID string
	GrantID     string // empty: what it runs needs none
	GraphID     string
	Input       json.RawMessage
	Cron        string // empty: Timing has the times
	Timezone    string
	Timing      string // JSON of when it runs besides Cron; empty: nothing
	MaxRuns     int64  // how many of its own slots may begin; zero: any number
	Begun       int64  // how many of them have
	Policy      string
	Enabled     bool
	Labels      map[string]string
	Rules       json.RawMessage // what holds for doing a slot again; nil: what usually does
	Revision    int64           // raised by every change of what a slot depends on
	Issue       string          // why it was switched off by itself, or is held back; mostly empty
	CappedUntil time.Time       // a daily cap holds its own slots back; mostly zero
	Calm        bool            // its lane is idle and nobody is needed; only HoldSchedule looks
	NextRunAt   time.Time
	LastRunAt   time.Time // when the last run started
	CreatedAt   time.Time
	UpdatedAt   time.Time
	DeletedAt   time.Time
}

const graphScheduleColumns = `id, name, owner_user_id, execution_grant_id, graph_id, input, cron, timezone, concurrency_policy, enabled, labels,
	rules, revision, issue, next_run_at, last_run_at, created_at, updated_at, deleted_at, timing, max_runs, begun, capped_until`

func scanGraphSchedule(row store.Scanner) (Schedule, error) {
	var s Schedule
	var input, labels string
	var enabled, created, updated int64
	var grant, rules, issue, timing *string
	var next, last, deleted, most, capped *int64
	err := row.Scan(&s.ID, &s.Name, &s.OwnerUserID, &grant, &s.GraphID, &input, &s.Cron, &s.Timezone, &s.Policy, &enabled, &labels,
		&rules, &s.Revision, &issue, &next, &last, &created, &updated, &deleted, &timing, &most, &s.Begun, &capped)
	if err != nil {
		return Schedule{}, err
	}
	s.Timing, s.MaxRuns = store.FromNullText(timing), fromNull(most)
	s.Input, s.Enabled, s.Issue = json.RawMessage(input), enabled != 0, store.FromNullText(issue)
	s.GrantID, s.Rules = store.FromNullText(grant), store.FromNullJSON(rules)
	s.NextRunAt, s.LastRunAt, s.DeletedAt = store.FromNullMillis(next), store.FromNullMillis(last), store.FromNullMillis(deleted)
	s.CreatedAt, s.UpdatedAt, s.CappedUntil = store.FromMillis(created), store.FromMillis(updated), store.FromNullMillis(capped)
	if s.Labels = (map[string]string{}); labels != "{}" { // most have none, and many are read at once
		err = json.Unmarshal([]byte(labels), &s.Labels)
	}
	return s, err
}

func noSchedule(err error, id string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read schedule", Msg: fmt.Sprintf("there is no schedule %q", id), Hint: "pawl get schedules lists them."}
	}
	return fmt.Errorf("read schedule: %w", err)
}

// fromNull and nullNumber keep zero as null.
func fromNull(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func nullNumber(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// InsertSchedule adds a schedule with its first version.
func (tx Tx) InsertSchedule(ctx context.Context, s Schedule, by string) (Schedule, error) {
	labels, err := json.Marshal(nonNil(s.Labels))
	if err != nil {
		return Schedule{}, err
	}
	s, err = scanGraphSchedule(tx.QueryRow(ctx, `insert into schedules (id, name, owner_user_id, execution_grant_id, graph_id, input, cron, timezone,
		concurrency_policy, enabled, labels, next_run_at, created_at, updated_at, timing, max_runs, rules)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15, $16) returning `+graphScheduleColumns,
		store.NewID(), s.Name, s.OwnerUserID, store.NullText(s.GrantID), s.GraphID, string(s.Input), s.Cron, s.Timezone, s.Policy, flag(s.Enabled), string(labels),
		store.NullMillis(s.NextRunAt), store.Millis(tx.Now), store.NullText(s.Timing), nullNumber(s.MaxRuns), store.NullText(string(s.Rules))))
	if tx.IsUnique(err) {
		return Schedule{}, &pawl.Error{Code: pawl.CodeConflict, Reason: "name_taken", Op: "create schedule", Msg: "a schedule of this name is there already", Hint: "Change that one, or use another name."}
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("insert schedule: %w", err)
	}
	state := "Idle"
	if !s.Enabled {
		state = "Stopped"
	}
	if err := runstore.In(tx.Tx).InsertLane(ctx, runstore.Lane{Kind: pawl.KindSchedule, Lane: s.ID, ID: s.ID, Name: s.Name, Owner: s.OwnerUserID, State: state}); err != nil {
		return Schedule{}, err
	}
	return s, tx.addScheduleVersion(ctx, s, by)
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// UpdateSchedule writes every field that a person can change. With changed, a
// slot that was made for the schedule as it was is no longer its own.
func (tx Tx) UpdateSchedule(ctx context.Context, s Schedule, changed bool, by string) (Schedule, error) {
	labels, err := json.Marshal(nonNil(s.Labels))
	if err != nil {
		return Schedule{}, err
	}
	s, err = scanGraphSchedule(tx.QueryRow(ctx, `update schedules set name = $2, execution_grant_id = $3, graph_id = $4, input = $5, cron = $6, timezone = $7,
		concurrency_policy = $8, enabled = $9, labels = $10, issue = $11, next_run_at = $12, revision = revision + $13, updated_at = $14,
		timing = $15, max_runs = $16, rules = $17, capped_until = $18, ended = 0 where id = $1 and deleted_at is null returning `+graphScheduleColumns,
		s.ID, s.Name, store.NullText(s.GrantID), s.GraphID, string(s.Input), s.Cron, s.Timezone, s.Policy, flag(s.Enabled), string(labels), store.NullText(s.Issue),
		store.NullMillis(s.NextRunAt), flag(changed), store.Millis(tx.Now), store.NullText(s.Timing), nullNumber(s.MaxRuns), store.NullText(string(s.Rules)), store.NullMillis(s.CappedUntil)))
	if tx.IsUnique(err) {
		return Schedule{}, &pawl.Error{Code: pawl.CodeConflict, Reason: "name_taken", Op: "change schedule", Msg: "a schedule of this name is there already", Hint: "Use another name."}
	}
	if err := noSchedule(err, s.ID); err != nil {
		return Schedule{}, err
	}
	if err := runstore.In(tx.Tx).RenameLane(ctx, pawl.KindSchedule, s.ID, s.Name); err != nil || !changed {
		return s, err
	}
	return s, tx.addScheduleVersion(ctx, s, by)
}

func (tx Tx) addScheduleVersion(ctx context.Context, s Schedule, by string) error {
	_, err := tx.Exec(ctx, `insert into schedule_versions (schedule_id, revision, graph_id, input, cron, timezone, enabled, created_at, created_by, timing, rules)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, s.ID, s.Revision, s.GraphID, string(s.Input), s.Cron, s.Timezone, flag(s.Enabled), store.Millis(tx.Now), store.NullText(by),
		store.NullText(s.Timing), store.NullText(string(s.Rules)))
	if err != nil {
		return fmt.Errorf("add schedule version: %w", err)
	}
	return nil
}

// DeleteSchedule takes a schedule out of use; its slots stay.
func (tx Tx) DeleteSchedule(ctx context.Context, id string) error {
	if _, err := tx.Exec(ctx, `update schedules set deleted_at = $2, updated_at = $2, enabled = 0, next_run_at = null, revision = revision + 1 where id = $1`, id, store.Millis(tx.Now)); err != nil {
		return fmt.Errorf("delete schedule: %w", err)
	}
	return runstore.In(tx.Tx).DropLane(ctx, pawl.KindSchedule, id)
}

// GetSchedule reads a schedule, a deleted one too.
func (tx Tx) GetSchedule(ctx context.Context, id string) (Schedule, error) {
	s, err := scanGraphSchedule(tx.QueryRow(ctx, `select `+graphScheduleColumns+` from schedules where id = $1`, id))
	return s, noSchedule(err, id)
}

// HoldSchedule reads a schedule that is not deleted and keeps others from
// changing its row until the transaction ends.
func (tx Tx) HoldSchedule(ctx context.Context, id string) (Schedule, error) {
	var calm int
	row := tx.QueryRow(ctx, `select `+graphScheduleColumns+`, case when exists (select 1 from lanes l where l.kind = 'schedule' and l.lane = schedules.id
		and l.state = 'Idle' and l.cause = '') then 1 else 0 end from schedules where id = $1 and deleted_at is null`+tx.ForUpdate(), id)
	s, err := scanGraphSchedule(store.Also(row, &calm))
	s.Calm = calm != 0
	return s, noSchedule(err, id)
}

// ScheduleByName reads a schedule of an owner that is not deleted.
func (tx Tx) ScheduleByName(ctx context.Context, ownerID, name string) (Schedule, error) {
	s, err := scanGraphSchedule(tx.QueryRow(ctx, `select `+graphScheduleColumns+` from schedules where owner_user_id = $1 and name = $2 and deleted_at is null`, ownerID, name))
	return s, noSchedule(err, name)
}

// SchedulesUnder reads up to limit schedules that run under a grant, by name.
func (tx Tx) SchedulesUnder(ctx context.Context, grantID string, limit int) ([]Schedule, error) {
	rows, err := tx.Query(ctx, `select `+graphScheduleColumns+` from schedules where execution_grant_id = $1 and deleted_at is null order by name, id limit $2`, grantID, limit)
	return store.ScanAll(rows, err, "read schedules of a grant", scanGraphSchedule)
}

// SchedulesNaming reads the schedules whose times have a text in them, by id;
// perhaps others as well.
func (tx Tx) SchedulesNaming(ctx context.Context, text string) ([]Schedule, error) {
	rows, err := tx.Query(ctx, `select `+graphScheduleColumns+` from schedules where deleted_at is null and timing like $1 order by id`, "%"+text+"%")
	return store.ScanAll(rows, err, "find schedules", scanGraphSchedule)
}

// ListSchedules reads up to limit schedules of an owner by name, those after the
// given one; an empty owner is everybody, by id.
func (tx Tx) ListSchedules(ctx context.Context, ownerID, after string, limit int) ([]Schedule, error) {
	query := `select ` + graphScheduleColumns + ` from schedules where deleted_at is null and id > $1 order by id limit $2`
	args := []any{after, limit}
	if ownerID != "" {
		query = `select ` + graphScheduleColumns + ` from schedules where deleted_at is null and name > $1 and owner_user_id = $3 order by name limit $2`
		args = append(args, ownerID)
	}
	rows, err := tx.Query(ctx, query, args...)
	return store.ScanAll(rows, err, "list schedules", scanGraphSchedule)
}

// SetScheduleTimes keeps when a schedule runs next.
func (tx Tx) SetScheduleTimes(ctx context.Context, id string, next time.Time) error {
	_, err := tx.Exec(ctx, `update schedules set next_run_at = $2 where id = $1`, id, store.NullMillis(next))
	if err != nil {
		return fmt.Errorf("change schedule times: %w", err)
	}
	return nil
}

// Turn is a schedule that runs now, and when it does so next.
type Turn struct {
	ScheduleID string
	Next       time.Time // zero: never
}

// SetTurns notes that runs of schedules start now, and when the next ones will.
func (tx Tx) SetTurns(ctx context.Context, list []Turn) error {
	rows := make([][]any, len(list))
	for i, t := range list {
		rows[i] = []any{t.ScheduleID, store.NullMillis(t.Next)}
	}
	table, args := tx.Rowset([]any{store.Millis(tx.Now)}, "schedule text, next bigint", rows)
	return tx.ChangeAll(ctx, len(list), "change schedule times", `update schedules set next_run_at = v.next, last_run_at = $1, begun = begun + 1 from `+table+` where id = v.schedule`, args...)
}

// SetTurn notes that a run of a slot of its own starts now, and when the next one
// will.
func (tx Tx) SetTurn(ctx context.Context, t Turn) error {
	if _, err := tx.Exec(ctx, `update schedules set next_run_at = $2, last_run_at = $3, begun = begun + 1 where id = $1`, t.ScheduleID, store.NullMillis(t.Next), store.Millis(tx.Now)); err != nil {
		return fmt.Errorf("change schedule times: %w", err)
	}
	return nil
}

// SetLastRun notes that a run of a schedule starts now; own says that it is that of
// a slot of its own.
func (tx Tx) SetLastRun(ctx context.Context, id string, own bool) error {
	if _, err := tx.Exec(ctx, `update schedules set last_run_at = $2, begun = begun + $3 where id = $1`, id, store.Millis(tx.Now), flag(own)); err != nil {
		return fmt.Errorf("change schedule times: %w", err)
	}
	return nil
}

// EndSchedule notes that a schedule has no further instant, unless one of its
// slots is open: then its end tells. Nobody has to look after it any more.
func (tx Tx) EndSchedule(ctx context.Context, id string) error {
	_, err := tx.Exec(ctx, `update schedules set ended = 1 where id = $1
		and not exists (select 1 from schedule_runs r where r.schedule_id = $1 and r.completed_at is null)`, id)
	if err != nil {
		return fmt.Errorf("end schedule: %w", err)
	}
	return nil
}

// SwitchOffSchedule disables a schedule because of what happened to it.
func (tx Tx) SwitchOffSchedule(ctx context.Context, id, issue string) error {
	_, err := tx.Exec(ctx, `update schedules set enabled = 0, issue = $2, capped_until = null, next_run_at = null, updated_at = $3, revision = revision + 1 where id = $1`, id, issue, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("switch off schedule: %w", err)
	}
	return nil
}

// CapSchedule holds the own slots of a schedule back until an instant; a zero one
// lets them run again.
func (tx Tx) CapSchedule(ctx context.Context, id string, until time.Time, issue string) error {
	_, err := tx.Exec(ctx, `update schedules set capped_until = $2, issue = $3, updated_at = $4 where id = $1`, id, store.NullMillis(until), store.NullText(issue), store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("cap schedule: %w", err)
	}
	return nil
}

// StaleSchedules reads up to limit enabled schedules whose next instant is
// unknown or past (C-14, X-59), the unknown ones first, then by instant; those
// after the given one. Whether anything is wrong with them is for the caller to
// find out. Schedules that are not due cost nothing.
func (tx Tx) StaleSchedules(ctx context.Context, after Schedule, limit int) ([]Schedule, error) {
	var out []Schedule
	var err error
	if after.NextRunAt.IsZero() {
		rows, err := tx.Query(ctx, `select `+graphScheduleColumns+` from schedules where enabled = 1 and deleted_at is null and next_run_at is null
			and ended = 0 and id > $1 order by id limit $2`, after.ID, limit)
		if out, err = store.ScanAll(rows, err, "find stale schedules", scanGraphSchedule); err != nil || len(out) == limit {
			return out, err
		}
		after = Schedule{}
	}
	rows, err := tx.Query(ctx, `select `+graphScheduleColumns+` from schedules where enabled = 1 and deleted_at is null and next_run_at <= $1
		and (next_run_at, id) > ($2, $3) order by next_run_at, id limit $4`, store.Millis(tx.Now), store.MillisOrZero(after.NextRunAt), after.ID, limit-len(out))
	due, err := store.ScanAll(rows, err, "find stale schedules", scanGraphSchedule)
	return append(out, due...), err
}

// ScheduleVersion is a schedule as it was.
type ScheduleVersion struct {
	Revision  int64
	GraphID   string
	Input     json.RawMessage
	Rules     json.RawMessage
	Cron      string
	Timezone  string
	Timing    string
	Enabled   bool
	CreatedAt time.Time
	CreatedBy string
}

const scheduleVersionColumns = `revision, graph_id, input, rules, cron, timezone, enabled, created_at, created_by, timing`

func scanScheduleVersion(row store.Scanner) (v ScheduleVersion, err error) {
	var input string
	var enabled, created int64
	var by, rules, timing *string
	err = row.Scan(&v.Revision, &v.GraphID, &input, &rules, &v.Cron, &v.Timezone, &enabled, &created, &by, &timing)
	v.Rules, v.Timing = store.FromNullJSON(rules), store.FromNullText(timing)
	v.Input, v.Enabled, v.CreatedAt, v.CreatedBy = json.RawMessage(input), enabled != 0, store.FromMillis(created), store.FromNullText(by)
	return v, err
}

// ScheduleVersions reads what a schedule was, the oldest first.
func (tx Tx) ScheduleVersions(ctx context.Context, id string, limit int) ([]ScheduleVersion, error) {
	rows, err := tx.Query(ctx, `select `+scheduleVersionColumns+` from schedule_versions where schedule_id = $1 order by revision desc limit $2`, id, limit)
	list, err := store.ScanAll(rows, err, "read schedule versions", scanScheduleVersion)
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, err
}

// ScheduleVersion reads what a schedule was at a revision, or fails with
// pawl.ErrNotFound.
func (tx Tx) ScheduleVersion(ctx context.Context, id string, revision int64) (ScheduleVersion, error) {
	v, err := scanScheduleVersion(tx.QueryRow(ctx, `select `+scheduleVersionColumns+` from schedule_versions where schedule_id = $1 and revision = $2`, id, revision))
	return v, noSchedule(err, fmt.Sprintf("%s at revision %d", id, revision))
}

// AliveAt is when a worker was last known to be at work; zero if none ever was.
func (tx Tx) AliveAt(ctx context.Context) (time.Time, error) {
	var at int64
	err := tx.QueryRow(ctx, `select alive_at from worker_clock where id = 1`).Scan(&at)
	if errors.Is(err, store.ErrNoRow) {
		return time.Time{}, nil
	}
	return store.FromMillis(at), err
}

// SetAlive notes that a worker is at work now, and never moves back.
func (tx Tx) SetAlive(ctx context.Context) error {
	_, err := tx.Exec(ctx, `insert into worker_clock as c (id, alive_at) values (1, $1) on conflict (id) do update set alive_at = $1 where c.alive_at < $1`, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("note that a worker is at work: %w", err)
	}
	return nil
}

// HasSchedules reports whether any schedule is enabled.
func (tx Tx) HasSchedules(ctx context.Context) (bool, error) {
	var one int
	err := tx.QueryRow(ctx, `select 1 from schedules where enabled = 1 limit 1`).Scan(&one)
	if errors.Is(err, store.ErrNoRow) {
		return false, nil
	}
	return err == nil, err
}
