package runstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawlrun/pawl/internal/store"
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

// Like is the pattern of the names, in lower case.
func (f LaneFilter) Like() string {
	return "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(f.Text)) + "%"
}

// NewestState is the word of a lane that is meant to run, by the status of its
// newest run; runs_lane has it.
func NewestState(kind, lane string) string {
	return `case coalesce((select r.status from runs r where r.kind = '` + kind + `' and r.lane = ` + lane + `
		order by r.created_at desc, r.id desc limit 1), '')
		when 'paused:approval' then 'Needs attention' when 'failed:internal' then 'Needs attention'
		when 'active' then 'Running' when 'paused:transient' then 'Running' when 'paused:reconciliation' then 'Running'
		when 'crashed' then 'Running' when 'failed:logic' then 'Running'
		else 'Idle' end`
}

// NeedsAttention is the condition that a lane needs a person: that was written down when
// it came to rest. It is asked for most and is mostly little.
func NeedsAttention(kind, lane string) string {
	return lane + ` in (select a.lane from attention a where a.kind = '` + kind + `')`
}

// LaneTable is how lanes of one kind are found.
type LaneTable struct {
	From   string // with its alias
	There  string // the lane is not deleted
	Wanted string // the lane is meant to run
	Noted  string // it needs a person
	Word   string // an expression; costs a look at the newest run
}

// Fits is the condition of a word, which is the parameter of this number.
func (t LaneTable) Fits(word string, parameter int) string {
	switch word {
	case "":
		return fmt.Sprintf(`$%d = ''`, parameter)
	case "Needs attention":
		return fmt.Sprintf(`$%d <> '' and %s`, parameter, t.Noted)
	}
	return fmt.Sprintf(`$%d = %s`, parameter, t.Word)
}

// FindLanes reads up to limit lanes whose name is their key, by name, those after
// the given one.
func (tx Tx) FindLanes(ctx context.Context, t LaneTable, columns string, f LaneFilter, after string, limit int) (store.Rows, error) {
	return tx.Query(ctx, `select `+columns+` from `+t.From+` where `+t.There+` and l.name > $1
		and lower(l.name) like $2 escape '\' and `+t.Fits(f.State, 3)+` order by l.name limit $4`, after, f.Like(), f.State, limit)
}

// CountLanes counts lanes by their state.
func (tx Tx) CountLanes(ctx context.Context, t LaneTable, args ...any) (map[string]int, error) {
	type count struct {
		word string
		n    int
	}
	rows, err := tx.Query(ctx, `select word, count(*) from (select `+t.Word+` as word from `+t.From+` where `+t.There+`) as lanes group by word`, args...)
	list, err := store.ScanAll(rows, err, "count lanes", func(row store.Scanner) (c count, err error) {
		return c, row.Scan(&c.word, &c.n)
	})
	out := map[string]int{}
	for _, c := range list {
		out[c.word] = c.n
	}
	return out, err
}
