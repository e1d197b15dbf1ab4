package sourcestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// SourceRun is how far a run of a source has come.
type SourceRun struct {
	RunID      string
	SourceID   string
	Version    string
	Definition json.RawMessage // as it was when the run began
	SourceProgress
	Note      string // for people
	StartedAt time.Time
	UpdatedAt time.Time
}

// SourceProgress is what a run has done.
type SourceProgress struct {
	Pages       int64 `json:"pages"`
	Requests    int64 `json:"requests"`
	Bytes       int64 `json:"bytes"`
	RowsRead    int64 `json:"rowsRead"`
	RowsNew     int64 `json:"rowsNew"`
	RowsChanged int64 `json:"rowsChanged"`
	Same        int64 `json:"rowsSame"`
	Rejects     int64 `json:"rejects"`
}

const sourceRunColumns = `run_id, source_id, version, definition, pages, requests, bytes, rows_read, rows_new, rows_changed, rows_same, rejects, note, started_at, updated_at`

func scanSourceRun(row store.Scanner) (SourceRun, error) {
	var r SourceRun
	var definition string
	var note *string
	var started, updated int64
	err := row.Scan(&r.RunID, &r.SourceID, &r.Version, &definition, &r.Pages, &r.Requests, &r.Bytes, &r.RowsRead, &r.RowsNew, &r.RowsChanged, &r.Same, &r.Rejects, &note, &started, &updated)
	r.Definition, r.Note, r.StartedAt, r.UpdatedAt = json.RawMessage(definition), store.FromNullText(note), store.FromMillis(started), store.FromMillis(updated)
	return r, err
}

// InsertSourceRun begins the progress of a run.
func (tx Tx) InsertSourceRun(ctx context.Context, r SourceRun) error {
	_, err := tx.Exec(ctx, `insert into source_runs (run_id, source_id, version, definition, note, started_at, updated_at) values ($1, $2, $3, $4, $5, $6, $6)
		on conflict (run_id) do nothing`, r.RunID, r.SourceID, r.Version, string(r.Definition), store.NullText(r.Note), store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("begin source run: %w", err)
	}
	return nil
}

// AddSourceProgress adds what was done since.
func (tx Tx) AddSourceProgress(ctx context.Context, runID string, p SourceProgress) error {
	err := tx.Post(ctx, `update source_runs set pages = pages + $2, requests = requests + $3, bytes = bytes + $4, rows_read = rows_read + $5,
		rows_new = rows_new + $6, rows_changed = rows_changed + $7, rows_same = rows_same + $8, rejects = rejects + $9, updated_at = $10 where run_id = $1`,
		runID, p.Pages, p.Requests, p.Bytes, p.RowsRead, p.RowsNew, p.RowsChanged, p.Same, p.Rejects, store.Millis(tx.Now))
	if err != nil {
		return fmt.Errorf("add source progress: %w", err)
	}
	return nil
}

// NoteSourceRun keeps a remark for people.
func (tx Tx) NoteSourceRun(ctx context.Context, runID, note string) error {
	if _, err := tx.Exec(ctx, `update source_runs set note = $2, updated_at = $3 where run_id = $1`, runID, note, store.Millis(tx.Now)); err != nil {
		return fmt.Errorf("note source run: %w", err)
	}
	return nil
}

// SourceRuns reads the progress of runs, by run id; what has none is left out.
func (tx Tx) SourceRuns(ctx context.Context, runIDs []string) (map[string]SourceRun, error) {
	out := map[string]SourceRun{}
	for batch := range store.Batches(runIDs) {
		text, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `select `+sourceRunColumns+` from source_runs where run_id in `+text, args...)
		list, err := store.ScanAll(rows, err, "read source runs", scanSourceRun)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			out[r.RunID] = r
		}
	}
	return out, nil
}

// LatestSourceRuns reads the progress of up to limit runs, the newest first.
func (tx Tx) LatestSourceRuns(ctx context.Context, sourceID string, limit int) ([]SourceRun, error) {
	rows, err := tx.Query(ctx, `select `+sourceRunColumns+` from source_runs where source_id = $1 order by started_at desc limit $2`, sourceID, limit)
	return store.ScanAll(rows, err, "list source runs", scanSourceRun)
}

// Reject is a row of the outside that did not fit.
type Reject struct {
	ID         int64
	SourceName string
	RunID      string
	Page       int
	Row        int
	Reason     string
	Raw        string
	Times      int // that it was met
	CreatedAt  time.Time
}

// hash is the same for a row that is met again and does not fit for the same
// reason.
func (r Reject) hash() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", r.SourceName, r.Reason, r.Raw))
	return hex.EncodeToString(sum[:16])
}

// AddRejects keeps rows that did not fit. One that was met before is kept once,
// as the newest, with how often that was.
func (tx Tx) AddRejects(ctx context.Context, list []Reject) error {
	last, times := map[string]Reject{}, map[string]int{}
	var hashes []string
	for _, r := range list {
		h := r.hash()
		if last[h] = r; times[h] == 0 {
			hashes = append(hashes, h)
		}
		times[h]++
	}
	for batch := range store.Batches(hashes) {
		text, args := store.In(nil, batch)
		rows, err := tx.Query(ctx, `delete from _rejects where hash in `+text+` returning hash, times`, args...)
		_, err = store.ScanAll(rows, err, "add rejects", func(row store.Scanner) (struct{}, error) {
			var h string
			var n int
			err := row.Scan(&h, &n)
			times[h] += n
			return struct{}{}, err
		})
		if err != nil {
			return err
		}
		v := store.Values{}
		for _, h := range batch {
			r := last[h]
			v.Row(tx.NextID(), r.SourceName, r.RunID, r.Page, r.Row, r.Reason, r.Raw, store.Millis(tx.Now), h, times[h])
		}
		if _, err := tx.Exec(ctx, `insert into _rejects (id, source_name, run_id, page, row_number, reason, raw, created_at, hash, times) values `+v.String(), v.Args...); err != nil {
			return fmt.Errorf("add rejects: %w", err)
		}
	}
	return nil
}

// ListRejects reads up to limit rejects of a source, the newest first; before
// is the id of the last one that was read already, or zero.
func (tx Tx) ListRejects(ctx context.Context, sourceName string, before int64, limit int) ([]Reject, error) {
	if before == 0 {
		before = 1 << 62
	}
	rows, err := tx.Query(ctx, `select id, source_name, run_id, page, row_number, reason, raw, created_at, times from _rejects
		where source_name = $1 and id < $2 order by id desc limit $3`, sourceName, before, limit)
	return store.ScanAll(rows, err, "list rejects", func(row store.Scanner) (r Reject, err error) {
		var created int64
		err = row.Scan(&r.ID, &r.SourceName, &r.RunID, &r.Page, &r.Row, &r.Reason, &r.Raw, &created, &r.Times)
		r.CreatedAt = store.FromMillis(created)
		return r, err
	})
}
