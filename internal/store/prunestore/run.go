package prunestore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Run is what decides whether a run is removed.
type Run struct {
	ID        string
	Kind      pawl.Kind
	Lane      string // of a schedule its id
	Handler   string
	Trigger   string
	Version   string // of its script; empty: none
	Type      pawl.HandlerType
	Status    pawl.Status
	RetryOf   string
	Followed  bool // it has a successor
	CreatedAt time.Time
	EndedAt   time.Time // when it was last changed, if it has not ended
	Stretch   Stretch   // zero: nothing may be folded into it
	Bytes     int64
}

// Place is where the run is in a walk.
func (r Run) Place() Place { return Place{At: store.Millis(r.CreatedAt), ID: r.ID} }

const runColumns = `r.id, r.kind, r.lane, r.handler, r.trigger, coalesce(r.script_version, ''), r.handler_type, r.status, r.retry_of, (select s.id from runs s where s.retry_of = r.id),
	r.created_at, coalesce(r.ended_at, r.updated_at), coalesce(r.through_at, 0), coalesce(r.run_count, 0),
	400 + coalesce(length(r.prepare_result), 0) + coalesce(length(r.mutation_result), 0) + coalesce(length(r.output_state), 0) + coalesce(length(r.error_message), 0)`

func scanRun(row store.Scanner) (r Run, err error) {
	var retryOf, successor *string
	var created, ended, through int64
	err = row.Scan(&r.ID, &r.Kind, &r.Lane, &r.Handler, &r.Trigger, &r.Version, &r.Type, &r.Status, &retryOf, &successor, &created, &ended, &through, &r.Stretch.Count, &r.Bytes)
	r.RetryOf, r.Followed = store.FromNullText(retryOf), successor != nil
	r.CreatedAt, r.EndedAt = store.FromMillis(created), store.FromMillis(ended)
	if r.Stretch.Count > 0 {
		r.Stretch.Through = store.FromMillis(through)
	}
	if r.Kind == pawl.KindSchedule && len(r.Lane) > scheduleID {
		r.Lane = r.Lane[:scheduleID]
	}
	return r, err
}

// scheduleID is how long the id of a schedule is, with which its lanes begin.
const scheduleID = 36

// OldRuns reads up to limit runs of a kind that were made before the cut, the
// oldest first, behind a place. An empty lane is every one.
func (tx Tx) OldRuns(ctx context.Context, kind pawl.Kind, lane string, after Place, cut time.Time, limit int) ([]Run, error) {
	return tx.oldRuns(ctx, store.Where{}, kind, lane, after, cut, limit)
}

// OldStretches is OldRuns for those that others may be folded into.
func (tx Tx) OldStretches(ctx context.Context, kind pawl.Kind, lane string, after Place, cut time.Time, limit int) ([]Run, error) {
	var c store.Where
	c.Add("r.folded_at is not null")
	return tx.oldRuns(ctx, c, kind, lane, after, cut, limit)
}

func (tx Tx) oldRuns(ctx context.Context, c store.Where, kind pawl.Kind, lane string, after Place, cut time.Time, limit int) ([]Run, error) {
	list, err := tx.oldRunsIn(ctx, c, kind, lane, false, after, cut, limit)
	if err != nil || kind != pawl.KindWorkflow || lane == "" {
		return list, err
	}
	of, err := tx.oldRunsIn(ctx, c, kind, lane, true, after, cut, limit)
	if err != nil || len(of) == 0 {
		return list, err
	}
	list = append(list, of...)
	slices.SortFunc(list, func(a, b Run) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	return list[:min(len(list), limit)], nil
}

// oldRunsIn reads those of a lane, or of the partitions of a workflow's.
func (tx Tx) oldRunsIn(ctx context.Context, c store.Where, kind pawl.Kind, lane string, parts bool, after Place, cut time.Time, limit int) ([]Run, error) {
	c.Texts, c.Args = slices.Clone(c.Texts), slices.Clone(c.Args)
	switch {
	case parts: // spelled like the index runs_part
		c.Add("kind = 'workflow' and substr(lane, length(lane) - 24, 1) = '/' and substr(lane, 1, length(lane) - 25) = ?", lane)
	case lane != "" && kind == pawl.KindSchedule: // spelled like the index runs_schedule
		c.Add("r.kind = 'schedule' and substr(lane, 1, 36) = ?", lane)
	case lane != "":
		c.Add("r.kind = ? and r.lane = ?", kind, lane)
	default:
		c.Add("r.kind = ?", kind)
	}
	c.Add("(r.created_at, r.id) > (?, ?)", after.At, after.ID)
	c.Add("r.created_at < ?", store.Millis(cut))
	text := c.String()
	rows, err := tx.Query(ctx, `select `+runColumns+` from runs r where `+text+` order by r.created_at, r.id`+c.Limit(limit), c.Args...)
	return store.ScanAll(rows, err, "read old runs", scanRun)
}

// NewestRun reads the newest run of a lane; false if there is none.
func (tx Tx) NewestRun(ctx context.Context, kind pawl.Kind, lane string) (Run, bool, error) {
	where := "r.kind = $1 and r.lane = $2"
	args := []any{kind, lane}
	if kind == pawl.KindSchedule {
		where, args = "r.kind = 'schedule' and substr(lane, 1, 36) = $1", args[1:]
	}
	rows, err := tx.Query(ctx, `select `+runColumns+` from runs r where `+where+` order by r.created_at desc, r.id desc limit 1`, args...)
	list, err := store.ScanAll(rows, err, "read newest run", scanRun)
	if err != nil || len(list) == 0 {
		return Run{}, false, err
	}
	return list[0], true, nil
}

// Before reads the attempts before some runs, of which each names its own in
// RetryOf.
func (tx Tx) Before(ctx context.Context, list []Run) (out []Run, err error) {
	var ids []string
	for _, r := range list {
		if r.RetryOf != "" {
			ids = append(ids, r.RetryOf)
		}
	}
	for batch := range store.Batches(ids) {
		text, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `select `+runColumns+` from runs r where r.id in `+text, args...)
		some, err := store.ScanAll(rows, err, "read earlier attempts", scanRun)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// inRecords finds the calls and receipts of runs, which are there for their own reasons.
const inRecords = `select run_id, id from mutations where run_id in {list}
	union all select run_id, id from charge_receipts where run_id in {list}`

// inUse finds runs that something else refers to, or that somebody is asked about.
const inUse = `select run_id from charge_reservations where run_id in {list}
	union select reserved_by from events where status = 'reserved' and reserved_by in {list}
	union select run_id from approvals where state = 'pending' and run_id in {list}
	union select run_id from repairs where state = 'proposed' and run_id in {list}
	union select run_id from graph_questions where answer is null and run_id in {list}
	union select subject from workflow_rights where how = 'asked' and subject in {list}
	union select s.run_id from schedule_runs s left join backfills b on b.id = s.backfill_id
		where s.run_id in {list} and (s.completed_at is null or b.state in ('planned', 'running', 'paused'))`

// RunsInUse finds which of some runs the ledger, receipts, held events, open slots
// or people who are asked refer to, but for calls and receipts with some ids.
func (tx Tx) RunsInUse(ctx context.Context, ids []string, but map[string]bool) (map[string]bool, error) {
	if len(but) == 0 {
		return found(ctx, tx, "find runs in use", `select run_id from (`+inRecords+`) as records union `+inUse, ids)
	}
	out, err := found(ctx, tx, "find runs in use", inUse, ids)
	if err != nil {
		return nil, err
	}
	for batch := range store.Batches(ids) {
		text, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, strings.ReplaceAll(inRecords, "{list}", text), args...)
		_, err = store.ScanAll(rows, err, "find records of runs", func(row store.Scanner) (struct{}, error) {
			var run, id string
			err := row.Scan(&run, &id)
			if !but[id] {
				out[run] = true
			}
			return struct{}{}, err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Script is the script of a workflow: the workflow's id, and the handlers that it has.
type Script struct {
	WorkflowID string
	Handlers   map[string]bool
}

// ScriptOf reads the script of the workflow that a lane belongs to; it has no handlers
// if there is none.
func (tx Tx) ScriptOf(ctx context.Context, lane string) (s Script, err error) {
	lane, _ = runstore.BaseLane(lane)
	rows, err := tx.Query(ctx, `select w.id, v.config from workflows w join workflow_versions v on v.workflow_id = w.id and v.version = w.version where w.lane = $1`, lane)
	type script struct{ id, config string }
	list, err := store.ScanAll(rows, err, "read script", func(row store.Scanner) (s script, err error) { return s, row.Scan(&s.id, &s.config) })
	if err != nil || len(list) == 0 {
		return s, err
	}
	var config struct {
		Producers, Consumers []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(list[0].config), &config); err != nil {
		return s, fmt.Errorf("read script of %s: %w", lane, err)
	}
	s = Script{list[0].id, map[string]bool{}}
	for _, h := range slices.Concat(config.Producers, config.Consumers) {
		s.Handlers[h.Name] = true
	}
	return s, nil
}

// GoodRuns reads the runs of a handler that a proposal of another script is tried
// with: the last ones that went well, and the last ones of those that made a call.
func (tx Tx) GoodRuns(ctx context.Context, workflowID, lane, handler string, most int) (map[string]bool, error) {
	lane, _ = runstore.BaseLane(lane)
	runs := runstore.In(tx.Tx)
	good, err := runs.GoodRuns(ctx, pawl.KindWorkflow, lane, handler, most)
	if err != nil {
		return nil, err
	}
	called, err := runs.GoodRunsThatCalled(ctx, workflowID, handler, most)
	out := map[string]bool{}
	for _, r := range append(good, called...) {
		out[r.ID] = true
	}
	return out, err
}

// HandlersOf reads whose runs some are.
func (tx Tx) HandlersOf(ctx context.Context, ids []string) (map[string]string, error) {
	out := map[string]string{}
	for batch := range store.Batches(ids) {
		text, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `select id, handler from runs where id in `+text, args...)
		_, err = store.ScanAll(rows, err, "read handlers of runs", func(row store.Scanner) (struct{}, error) {
			var id, handler string
			err := row.Scan(&id, &handler)
			out[id] = handler
			return struct{}{}, err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DeleteRuns removes runs with what hangs on them. They are whole chains, or
// their oldest attempts: the attempt that follows them becomes the first.
func (tx Tx) DeleteRuns(ctx context.Context, ids []string) (n int64, err error) {
	for _, table := range []string{"run_logs", "run_reads", "source_runs", "approvals", "repairs", "graph_questions"} {
		if _, err := deleteIn(ctx, tx, table, "run_id", ids); err != nil {
			return 0, err
		}
	}
	for batch := range store.Batches(ids) {
		text, args := store.In(nil, batch)
		if _, err := tx.Exec(ctx, `update runs set retry_of = null where retry_of in `+text, args...); err != nil {
			return 0, fmt.Errorf("cut chains: %w", err)
		}
	}
	return deleteIn(ctx, tx, "runs", "id", ids)
}

// SizeOfReads is how much is kept of what some runs read; SizeOfLogs of what they
// logged.
func (tx Tx) SizeOfReads(ctx context.Context, ids []string) (map[string]Size, error) {
	return tx.sizeByRun(ctx, "run_reads", "120 + length(call) + coalesce(length(answer), length(content), 0) + coalesce(length(error), 0)", ids)
}

// SizeOfLogs is how much some runs logged.
func (tx Tx) SizeOfLogs(ctx context.Context, ids []string) (map[string]Size, error) {
	return tx.sizeByRun(ctx, "run_logs", "80 + length(text)", ids)
}

func (tx Tx) sizeByRun(ctx context.Context, table, bytes string, ids []string) (map[string]Size, error) {
	out := map[string]Size{}
	for batch := range store.Batches(ids) {
		text, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `select run_id, count(*), cast(sum(`+bytes+`) as bigint) from `+table+` where run_id in `+text+` group by run_id`, args...)
		_, err = store.ScanAll(rows, err, "measure "+table, func(row store.Scanner) (struct{}, error) {
			var id string
			var s Size
			err := row.Scan(&id, &s.Rows, &s.Bytes)
			out[id] = s
			return struct{}{}, err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DeleteReads removes what some runs read.
func (tx Tx) DeleteReads(ctx context.Context, ids []string) (int64, error) {
	return deleteIn(ctx, tx, "run_reads", "run_id", ids)
}

// DeleteLogs removes what some runs logged.
func (tx Tx) DeleteLogs(ctx context.Context, ids []string) (int64, error) {
	return deleteIn(ctx, tx, "run_logs", "run_id", ids)
}

// Unended reads those of some runs that have neither committed nor been cancelled.
func (tx Tx) Unended(ctx context.Context, ids []string) (out []Run, err error) {
	for batch := range store.Batches(ids) {
		text, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `select `+runColumns+` from runs r where r.status not in ('committed', 'cancelled') and r.id in `+text, args...)
		some, err := store.ScanAll(rows, err, "find runs that have not ended", scanRun)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// ContentsOf reads which answers some runs were given.
func (tx Tx) ContentsOf(ctx context.Context, ids []string) (map[string]bool, error) {
	return found(ctx, tx, "read answers of runs", `select distinct content from run_reads where content is not null and run_id in {list}`, ids)
}

// OldContents reads up to limit answers behind an id that no run was given since
// the cut; those that a read refers to are needed.
func (tx Tx) OldContents(ctx context.Context, after Place, cut time.Time, limit int) ([]Old, error) {
	rows, err := tx.Query(ctx, `select c.id, c.workflow_id, '', c.at, 60 + length(c.content),
		case when c.at >= $2 or exists (select 1 from run_reads r where r.content = c.id) then 1 else 0 end, 0
		from read_contents c where c.id > $1 order by c.id limit $3`, after.ID, store.Millis(cut), limit)
	return store.ScanAll(rows, err, "read old answers", scanOld)
}

// DeleteContents removes answers that no read refers to and that no run was given
// since the cut.
func (tx Tx) DeleteContents(ctx context.Context, list []Old, cut time.Time) error {
	ids := make([]string, len(list))
	for i, o := range list {
		ids[i] = o.ID
	}
	for batch := range store.Batches(ids) {
		text, args := store.In([]any{store.Millis(cut)}, batch)
		if _, err := tx.Exec(ctx, `delete from read_contents where at < $1 and not exists (select 1 from run_reads r where r.content = read_contents.id) and id in `+text, args...); err != nil {
			return fmt.Errorf("remove answers: %w", err)
		}
	}
	return nil
}

// Reserving finds which of some runs took events.
func (tx Tx) Reserving(ctx context.Context, ids []string) (map[string]bool, error) {
	return found(ctx, tx, "find who took events", `select id from runs where prepare_result is not null and prepare_result not like '{"reservations":[],%' and id in {list}`, ids)
}

// FetchedNothing finds which of some runs of sources brought nothing new.
func (tx Tx) FetchedNothing(ctx context.Context, ids []string) (map[string]bool, error) {
	return found(ctx, tx, "find who fetched nothing", `select run_id from source_runs where rows_new = 0 and rows_changed = 0 and rejects = 0 and run_id in {list}`, ids)
}
