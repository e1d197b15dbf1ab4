package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// The reads that neither the API nor the store has. They use the SQL that both
// databases share.

// laneFilter picks lanes; empty fields pick all.
type laneFilter struct {
	Text string // part of the name
	Kind string
	Word run.Word
}

func (f laneFilter) any() bool { return f.Text != "" || f.Word != "" }

// newestStatus is the status of the newest run of a workflow; runs_lane has it.
const newestStatus = `coalesce((select r.status from runs r where r.kind = 'workflow' and r.lane = w.lane
	order by r.created_at desc, r.id desc limit 1), '')`

// workflowWord is the word of a workflow as far as SQL can tell. What is
// shown comes from the workflow's own rules; this only finds the candidates, so
// that looking for three among ten thousand does not go through all of them.
const workflowWord = `case
	when w.desired <> 'active' then 'Stopped'
	when exists (select 1 from attention a where a.kind = 'workflow' and a.lane = w.lane) then 'Needs attention'
	else case ` + newestStatus + `
		when 'paused:approval' then 'Needs attention' when 'failed:internal' then 'Needs attention'
		when 'active' then 'Running' when 'paused:transient' then 'Running' when 'paused:reconciliation' then 'Running'
		when 'crashed' then 'Running' when 'failed:logic' then 'Running'
		else 'Idle' end
	end`

// fits is the condition of a word; $3 is the word. What needs a person is asked
// for most and is mostly little, so it is looked up where it was noted when the
// lane came to rest.
func fits(word run.Word) string {
	switch word {
	case "":
		return `$3 = ''`
	case run.NeedsAttention:
		return `$3 <> '' and w.desired = 'active' and w.lane in (select a.lane from attention a where a.kind = 'workflow')`
	default:
		return `$3 = ` + workflowWord
	}
}

// findWorkflows reads the names of up to limit workflows that fit, those after
// the given one.
func findWorkflows(ctx context.Context, tx *store.Tx, f laneFilter, after string, limit int) ([]string, error) {
	like := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(f.Text)) + "%"
	rows, err := tx.Query(ctx, `select w.name from workflows w where w.deleted_at is null and w.name > $1
		and lower(w.name) like $2 escape '\' and `+fits(f.Word)+` order by w.name limit $4`, after, like, string(f.Word), limit)
	if err != nil {
		return nil, fmt.Errorf("find workflows: %w", err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("find workflows: %w", err)
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

// countWorkflows counts workflows by their word.
func countWorkflows(ctx context.Context, tx *store.Tx) (map[run.Word]int, error) {
	rows, err := tx.Query(ctx, `select word, count(*) from (select `+workflowWord+` as word from workflows w where w.deleted_at is null) c group by word`)
	if err != nil {
		return nil, fmt.Errorf("count workflows: %w", err)
	}
	defer rows.Close()
	out := map[run.Word]int{}
	for rows.Next() {
		var word string
		var n int
		if err := rows.Scan(&word, &n); err != nil {
			return nil, fmt.Errorf("count workflows: %w", err)
		}
		out[run.Word(word)] = n
	}
	return out, rows.Err()
}

// listUsers reads up to limit users by name, those after the given one.
func listUsers(ctx context.Context, tx *store.Tx, after string, limit int) ([]store.User, error) {
	rows, err := tx.Query(ctx, `select id, name, role, created_at from users where name > $1 order by name limit $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	defer rows.Close()
	var out []store.User
	for rows.Next() {
		var u store.User
		var role string
		var created int64
		if err := rows.Scan(&u.ID, &u.Name, &role, &created); err != nil {
			return nil, fmt.Errorf("list users: %w", err)
		}
		u.Role, u.CreatedAt = store.Role(role), time.UnixMilli(created).UTC()
		out = append(out, u)
	}
	return out, rows.Err()
}
