package sourcestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// Source is a definition under its name.
type Source struct {
	ID         string
	Name       string
	Definition json.RawMessage
	Version    string // SHA-256 of the definition
	Number     int    // of the version: 1, 2, ...
	Status     string // what the definition says; only active ones run
	PausedAt   time.Time
	DeletingAt time.Time
	Revision   int64 // raised by every change of the fields here
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

const sourceColumns = `id, name, definition, version, number, status, paused_at, deleting_at, revision, created_at, updated_at`

func scanSource(row store.Scanner) (Source, error) {
	var s Source
	var definition string
	var paused, deleting *int64
	var created, updated int64
	if err := row.Scan(&s.ID, &s.Name, &definition, &s.Version, &s.Number, &s.Status, &paused, &deleting, &s.Revision, &created, &updated); err != nil {
		return Source{}, err
	}
	s.Definition = json.RawMessage(definition)
	s.PausedAt, s.DeletingAt, s.CreatedAt, s.UpdatedAt = store.FromNullMillis(paused), store.FromNullMillis(deleting), store.FromMillis(created), store.FromMillis(updated)
	return s, nil
}

func noSource(err error, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read source", Msg: fmt.Sprintf("there is no source %q", name), Hint: "pawl get sources lists them."}
	}
	return fmt.Errorf("read source: %w", err)
}

// SourceByName reads a source, or fails with pawl.ErrNotFound.
func (tx Tx) SourceByName(ctx context.Context, name string) (Source, error) {
	s, err := scanSource(tx.QueryRow(ctx, `select `+sourceColumns+` from source_definitions where name = $1`, name))
	return s, noSource(err, name)
}

// GetSource reads a source by its id, or fails with pawl.ErrNotFound.
func (tx Tx) GetSource(ctx context.Context, id string) (Source, error) {
	s, err := scanSource(tx.QueryRow(ctx, `select `+sourceColumns+` from source_definitions where id = $1`, id))
	return s, noSource(err, id)
}

// HoldSource reads a source by its name and keeps others from changing or
// sharing its row until the transaction ends.
func (tx Tx) HoldSource(ctx context.Context, name string) (Source, error) {
	s, err := scanSource(tx.QueryRow(ctx, `select `+sourceColumns+` from source_definitions where name = $1`+tx.ForUpdate(), name))
	return s, noSource(err, name)
}

// ShareSource reads a source and keeps others from changing its row until the
// transaction ends.
func (tx Tx) ShareSource(ctx context.Context, id string) (Source, error) {
	s, err := scanSource(tx.QueryRow(ctx, `select `+sourceColumns+` from source_definitions where id = $1`+tx.ForShare(), id))
	return s, noSource(err, id)
}

// InsertSource adds a source with its first version and its state.
func (tx Tx) InsertSource(ctx context.Context, s Source, by string) (Source, error) {
	s, err := scanSource(tx.QueryRow(ctx, `insert into source_definitions (id, name, definition, version, number, status, created_at, updated_at)
		values ($1, $2, $3, $4, 1, $5, $6, $6) returning `+sourceColumns, store.NewID(), s.Name, string(s.Definition), s.Version, s.Status, store.Millis(tx.Now)))
	if tx.IsUnique(err) {
		return Source{}, &pawl.Error{Code: pawl.CodeConflict, Op: "insert source", Msg: "the source was created by someone else at the same time", Hint: "Try again."}
	}
	if err != nil {
		return Source{}, fmt.Errorf("insert source: %w", err)
	}
	if _, err := tx.Exec(ctx, `insert into source_state (source_id, updated_at) values ($1, $2)`, s.ID, store.Millis(tx.Now)); err != nil {
		return Source{}, fmt.Errorf("insert source: %w", err)
	}
	if err := runstore.In(tx.Tx).InsertLane(ctx, runstore.Lane{Kind: pawl.KindSource, Lane: s.Name, ID: s.ID, Name: s.Name, State: "Idle"}); err != nil {
		return Source{}, err
	}
	return s, tx.addSourceVersion(ctx, s, by)
}

// UpdateSource puts another definition in force.
func (tx Tx) UpdateSource(ctx context.Context, id string, definition json.RawMessage, version, status, by string) (Source, error) {
	s, err := scanSource(tx.QueryRow(ctx, `update source_definitions set definition = $2, version = $3, status = $4, number = number + 1,
		revision = revision + 1, updated_at = $5 where id = $1 returning `+sourceColumns, id, string(definition), version, status, store.Millis(tx.Now)))
	if err := noSource(err, id); err != nil {
		return Source{}, err
	}
	return s, tx.addSourceVersion(ctx, s, by)
}

func (tx Tx) addSourceVersion(ctx context.Context, s Source, by string) error {
	_, err := tx.Exec(ctx, `insert into source_versions (source_id, number, version, definition, created_at, created_by) values ($1, $2, $3, $4, $5, $6)`,
		s.ID, s.Number, s.Version, string(s.Definition), store.Millis(tx.Now), store.NullText(by))
	if err != nil {
		return fmt.Errorf("add source version: %w", err)
	}
	return nil
}

// SetSourcePaused notes whether a person wants the source to rest.
func (tx Tx) SetSourcePaused(ctx context.Context, id string, paused bool) error {
	var at any
	if paused {
		at = store.Millis(tx.Now)
	}
	return tx.setSource(ctx, id, "paused_at", at)
}

// SetSourceDeleting notes that the source is being deleted: nothing of it
// starts any more.
func (tx Tx) SetSourceDeleting(ctx context.Context, id string) error {
	return tx.setSource(ctx, id, "deleting_at", store.Millis(tx.Now))
}

func (tx Tx) setSource(ctx context.Context, id, column string, value any) error {
	if _, err := tx.Exec(ctx, `update source_definitions set `+column+` = $2, revision = revision + 1, updated_at = $3 where id = $1`, id, value, store.Millis(tx.Now)); err != nil {
		return fmt.Errorf("change source: %w", err)
	}
	return nil
}

// DeleteSource removes a source with its versions, state and rejects. Its runs
// stay for whoever asks what happened.
func (tx Tx) DeleteSource(ctx context.Context, s Source) error {
	for _, statement := range []string{
		`delete from source_versions where source_id = $1`,
		`delete from source_state where source_id = $1`,
		`delete from source_definitions where id = $1`,
	} {
		if _, err := tx.Exec(ctx, statement, s.ID); err != nil {
			return fmt.Errorf("delete source: %w", err)
		}
	}
	if _, err := tx.Exec(ctx, `delete from _rejects where source_name = $1`, s.Name); err != nil {
		return fmt.Errorf("delete source: %w", err)
	}
	if _, err := tx.Exec(ctx, `delete from retries where kind = $1 and lane = $2`, pawl.KindSource, s.Name); err != nil {
		return fmt.Errorf("delete source: %w", err)
	}
	return runstore.In(tx.Tx).DropLane(ctx, pawl.KindSource, s.Name)
}

// ListSources reads up to limit sources by name, those after the given one.
func (tx Tx) ListSources(ctx context.Context, after string, limit int) ([]Source, error) {
	rows, err := tx.Query(ctx, `select `+sourceColumns+` from source_definitions where name > $1 order by name limit $2`, after, limit)
	return store.ScanAll(rows, err, "list sources", scanSource)
}

// UnarmedSources reads up to limit sources by name, those after the given one,
// that are meant to run and have no job of the task that would see to it.
func (tx Tx) UnarmedSources(ctx context.Context, task, after string, limit int) ([]Source, error) {
	rows, err := tx.Query(ctx, `select `+sourceColumns+` from source_definitions s where status = 'active' and paused_at is null and name > $1
		and not exists (select 1 from jobs j where j.key = 'source:' || s.id and j.owner = '' and j.task = $3 and j.state = 0)
		order by name limit $2`, after, limit, task)
	return store.ScanAll(rows, err, "find sources without a job", scanSource)
}

// SourceVersion is a definition as it was applied.
type SourceVersion struct {
	Number     int
	Version    string
	Definition json.RawMessage
	CreatedAt  time.Time
	CreatedBy  string
}

// SourcesOfTable reads up to a thousand definitions of sources that may write to
// a table, in any case of letters, but for the one of that name.
func (tx Tx) SourcesOfTable(ctx context.Context, table, except string) ([]json.RawMessage, error) {
	like := `%"table":"` + strings.ToLower(strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(table)) + `"%`
	rows, err := tx.Query(ctx, `select definition from source_definitions where lower(definition) like $1 escape '\' and name <> $2 order by name limit 1000`, like, except)
	return store.ScanAll(rows, err, "read sources of a table", func(row store.Scanner) (json.RawMessage, error) {
		var definition string
		err := row.Scan(&definition)
		return json.RawMessage(definition), err
	})
}

// ListSourceVersions reads up to limit versions, the newest first; before is
// the number of the last one that was read already, or zero.
func (tx Tx) ListSourceVersions(ctx context.Context, sourceID string, before int64, limit int) ([]SourceVersion, error) {
	if before == 0 {
		before = 1 << 62
	}
	rows, err := tx.Query(ctx, `select number, version, definition, created_at, created_by from source_versions
		where source_id = $1 and number < $2 order by number desc limit $3`, sourceID, before, limit)
	return store.ScanAll(rows, err, "list source versions", func(row store.Scanner) (v SourceVersion, err error) {
		var definition string
		var created int64
		var by *string
		err = row.Scan(&v.Number, &v.Version, &definition, &created, &by)
		v.Definition, v.CreatedAt, v.CreatedBy = json.RawMessage(definition), store.FromMillis(created), store.FromNullText(by)
		return v, err
	})
}

// SourceState is what a source remembers from run to run.
type SourceState struct {
	LastSuccessAt time.Time // when a whole fetch was last committed
	LastAttemptAt time.Time
	LastFailed    bool // the last attempt did not succeed
	RequestedAt   time.Time
	Plan          string          // JSON: what the instants of its schedule depend on besides what is written; empty: nothing
	StoodFor      time.Time       // the latest instant of its schedule that a run began for
	Mark          json.RawMessage // how far the incremental cursor has come
	Position      json.RawMessage // where a fetch that was cut off goes on
	PositionOf    string          // the version that the position belongs to
	RowsTotal     int64
	FailuresTotal int64
}

// GetSourceState reads what a source remembers.
func (tx Tx) GetSourceState(ctx context.Context, sourceID string) (SourceState, error) {
	var s SourceState
	var success, attempt, requested *int64
	var failed int64
	var stood *int64
	var mark, position, of, plan *string
	err := tx.QueryRow(ctx, `select last_success_at, last_attempt_at, last_failed, requested_at, plan, stood_for, mark, position, position_of, rows_total, failures_total
		from source_state where source_id = $1`, sourceID).Scan(&success, &attempt, &failed, &requested, &plan, &stood, &mark, &position, &of, &s.RowsTotal, &s.FailuresTotal)
	if err != nil {
		return SourceState{}, noSource(err, sourceID)
	}
	s.LastSuccessAt, s.LastAttemptAt, s.RequestedAt, s.LastFailed = store.FromNullMillis(success), store.FromNullMillis(attempt), store.FromNullMillis(requested), failed != 0
	s.Plan, s.StoodFor = store.FromNullText(plan), store.FromNullMillis(stood)
	s.Mark, s.Position, s.PositionOf = store.FromNullJSON(mark), store.FromNullJSON(position), store.FromNullText(of)
	return s, nil
}

// RequestSource notes that somebody asked for a run now.
func (tx Tx) RequestSource(ctx context.Context, sourceID string) error {
	return tx.setSourceState(ctx, `requested_at = $2`, sourceID, store.Millis(tx.Now))
}

// SourceBegan notes that a fetch began: until it is committed, it counts as
// failed. stands is the instant of its schedule that it is for; zero: none.
func (tx Tx) SourceBegan(ctx context.Context, sourceID string, stands time.Time) error {
	return tx.setSourceState(ctx, `last_attempt_at = $2, last_failed = 1, requested_at = null,
		stood_for = case when cast($3 as bigint) > coalesce(stood_for, 0) then $3 else stood_for end`, sourceID, store.Millis(tx.Now), store.MillisOrZero(stands))
}

// SetSourcePlan keeps what the instants of a source depend on, and keeps runs from
// beginning that were decided on before.
func (tx Tx) SetSourcePlan(ctx context.Context, sourceID, plan string) error {
	if err := tx.setSourceState(ctx, `plan = $2`, sourceID, store.NullText(plan)); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update source_definitions set revision = revision + 1 where id = $1`, sourceID); err != nil {
		return fmt.Errorf("change source: %w", err)
	}
	return nil
}

// SourcesNaming reads the sources whose definitions have a text in them, by name.
func (tx Tx) SourcesNaming(ctx context.Context, text string) ([]Source, error) {
	rows, err := tx.Query(ctx, `select `+sourceColumns+` from source_definitions where definition like $1 order by name`, "%"+text+"%")
	return store.ScanAll(rows, err, "find sources", scanSource)
}

// SourceMoved keeps where the fetch goes on, if it is cut off.
func (tx Tx) SourceMoved(ctx context.Context, sourceID string, position json.RawMessage, version string) error {
	return tx.setSourceState(ctx, `position = $2, position_of = $3`, sourceID, store.NullJSON(position), store.NullText(version))
}

// SourceWrote counts rows that were written.
func (tx Tx) SourceWrote(ctx context.Context, sourceID string, rows int) error {
	return tx.setSourceState(ctx, `rows_total = rows_total + $2`, sourceID, rows)
}

// SourceSucceeded notes that a whole fetch was committed now. An empty mark
// leaves the one that is there.
func (tx Tx) SourceSucceeded(ctx context.Context, sourceID string, mark json.RawMessage) error {
	return tx.setSourceState(ctx, `last_success_at = $2, last_failed = 0, position = null, position_of = null, mark = coalesce($3, mark)`, sourceID, store.Millis(tx.Now), store.NullJSON(mark))
}

// SourceFailed counts a failure.
func (tx Tx) SourceFailed(ctx context.Context, sourceID string) error {
	return tx.setSourceState(ctx, `failures_total = failures_total + $2`, sourceID, 1)
}

// ResetSource forgets position and mark: the next fetch begins at the start.
func (tx Tx) ResetSource(ctx context.Context, sourceID string) error {
	return tx.setSourceState(ctx, `position = null, position_of = null, mark = null, last_success_at = null, last_failed = $2`, sourceID, 0)
}

func (tx Tx) setSourceState(ctx context.Context, assignments, sourceID string, values ...any) error {
	args := append([]any{sourceID}, values...)
	args = append(args, store.Millis(tx.Now))
	if err := tx.Post(ctx, fmt.Sprintf(`update source_state set %s, updated_at = $%d where source_id = $1`, assignments, len(args)), args...); err != nil {
		return fmt.Errorf("change source state: %w", err)
	}
	return nil
}
