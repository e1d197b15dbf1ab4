package runstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// RunRead is something that a handler read, and what it was answered.
type RunRead struct {
	Phase  pawl.Phase
	Op     string          // peek, getByIds, tool
	Call   json.RawMessage // the arguments
	Answer json.RawMessage // nil: it failed, or was too large to keep
	Error  string
	Cut    bool // the answer was too large to keep
	At     time.Time
}

// smallAnswer is up to how many bytes an answer is kept in the row of its read;
// a reference to it would not be much smaller.
const smallAnswer = 200

// AddRunReads keeps what a run of a workflow read; first is how many it read
// before. Answers are kept once for each workflow: those that it had before cost a
// reference.
func (tx Tx) AddRunReads(ctx context.Context, workflowID, runID string, first int, list []RunRead) error {
	if err := tx.addContents(ctx, workflowID, list); err != nil {
		return err
	}
	for part := range store.Batches(list) {
		v := store.Values{}
		for i, r := range part {
			cut := 0
			if r.Cut {
				cut = 1
			}
			answer, content := string(r.Answer), ""
			if len(answer) > smallAnswer {
				answer, content = "", contentID(workflowID, answer)
			}
			v.Row(runID, first+i, string(r.Phase), r.Op, string(r.Call), store.NullText(answer), store.NullText(content), store.NullText(r.Error), cut, store.Millis(r.At))
		}
		first += len(part)
		if err := tx.Post(ctx, `insert into run_reads (run_id, n, phase, op, call, answer, content, error, cut, at) values `+v.String(), v.Args...); err != nil {
			return fmt.Errorf("keep what a run read: %w", err)
		}
	}
	return nil
}

// addContents keeps large answers that are not there yet. Of those that are, it
// notes the instant: whoever removes what nothing refers to waits, and sees that it
// is in use again. Only the one active run of a workflow's lane writes its contents,
// so nobody waits for anybody else here.
func (tx Tx) addContents(ctx context.Context, workflowID string, list []RunRead) error {
	contents := map[string]string{}
	for _, r := range list {
		if len(r.Answer) > smallAnswer {
			contents[contentID(workflowID, string(r.Answer))] = string(r.Answer)
		}
	}
	for part := range store.Batches(slices.Sorted(maps.Keys(contents))) {
		v := store.Values{}
		for _, id := range part {
			v.Row(id, workflowID, store.Millis(tx.Now), contents[id])
		}
		if err := tx.Post(ctx, `insert into read_contents (id, workflow_id, at, content) values `+v.String()+` on conflict (id) do update set at = excluded.at`, v.Args...); err != nil {
			return fmt.Errorf("keep answers: %w", err)
		}
	}
	return nil
}

func contentID(workflowID, content string) string {
	h := sha256.New()
	h.Write([]byte(workflowID + "\x00"))
	h.Write([]byte(content))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// ForgetRunReads removes what a run read from a number on: it reads again.
func (tx Tx) ForgetRunReads(ctx context.Context, runID string, from int) error {
	if _, err := tx.Exec(ctx, `delete from run_reads where run_id = $1 and n >= $2`, runID, from); err != nil {
		return fmt.Errorf("forget what a run read: %w", err)
	}
	return nil
}

// RunReads reads what a run read, in its order.
func (tx Tx) RunReads(ctx context.Context, runID string) ([]RunRead, error) {
	rows, err := tx.Query(ctx, `select r.phase, r.op, r.call, coalesce(r.answer, c.content), r.error, r.cut, r.at
		from run_reads r left join read_contents c on c.id = r.content where r.run_id = $1 order by r.n`, runID)
	return store.ScanAll(rows, err, "read what a run read", func(row store.Scanner) (r RunRead, err error) {
		var call string
		var answer, failure *string
		var cut int
		var at int64
		if err = row.Scan(&r.Phase, &r.Op, &call, &answer, &failure, &cut, &at); err != nil {
			return r, err
		}
		r.Call, r.Answer, r.Error, r.Cut, r.At = json.RawMessage(call), store.FromNullJSON(answer), store.FromNullText(failure), cut == 1, store.FromMillis(at)
		return r, nil
	})
}
