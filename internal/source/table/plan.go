package table

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
)

// The dialects, by the names that store.DB.Name gives.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// The columns that Pawl adds.
const (
	colSource  = "source_name"
	colCreated = "created_at"
	colUpdated = "updated_at"
	colRun     = "_run"
	colRaw     = "_raw"
	colRow     = "_row"
)

// ReasonMismatch narrows the error of a table that does not fit.
const ReasonMismatch = "table_mismatch"

// DB runs statements with $N parameters; *store.Tx is one.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (int64, error)
	Query(ctx context.Context, sql string, args ...any) (store.Rows, error)
}

// Plan knows how the rows of one definition are written to one kind of
// database. Ensure teaches it the table that it found; before that it expects
// a table as Pawl makes it. It is for one goroutine at a time.
type Plan struct {
	source string
	mode   spec.Mode
	key    []string // of the definition; empty: rows are told apart by colRow
	fields []column // in the order of a row's values, colRaw last
	sql    dialect
	shape  shape // of the table
	bulk   bulk
}

// New makes the plan of a definition that spec has checked.
func New(dialectName string, d spec.Definition) (*Plan, error) {
	p := &Plan{source: d.Name, mode: d.Write.Mode, key: d.Write.Key}
	switch dialectName {
	case SQLite:
		p.sql = sqlite{}
	case Postgres:
		p.sql = postgres{}
	default:
		return nil, fmt.Errorf("plan table: %q is not a database that rows can be written to", dialectName)
	}
	if strings.HasPrefix(strings.ToLower(d.Table), "_pawl_") {
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "plan table", Msg: fmt.Sprintf("the name %s is kept for Pawl", d.Table), Hint: "Choose a table whose name does not begin with _pawl_."}
	}
	for _, f := range d.Response.Fields {
		p.fields = append(p.fields, column{name: f.Target, kind: f.Type})
	}
	if d.Response.Raw {
		p.fields = append(p.fields, column{name: colRaw, kind: rawText})
	}
	if p.mode == spec.Upsert && len(p.key) == 0 {
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "plan table", Msg: "upsert needs a key"}
	}
	for _, k := range p.key {
		if !slices.ContainsFunc(p.fields, func(c column) bool { return c.name == k }) {
			return nil, &pawl.Error{Code: pawl.CodeInvalid, Op: "plan table", Msg: fmt.Sprintf("the key column %s is not the target of a field", k)}
		}
	}
	p.shape = p.natural(d.Table)
	return p, nil
}

// natural is the shape of a table as Pawl makes it.
func (p *Plan) natural(name string) shape {
	s := shape{name: name, columns: slices.Clone(p.fields), ident: identity{columns: p.key, source: true}}
	s.own = []column{{name: colSource, kind: spec.Text}, {name: colCreated, kind: instant}, {name: colRun, kind: spec.Text}}
	if p.mode != spec.Append {
		s.own = append(s.own, column{name: colUpdated, kind: instant})
	}
	if len(p.key) == 0 {
		s.digest()
	}
	return s
}

// staging is the shape of the table where the pages of a replace gather: the
// identity of the table, in the types that Pawl gives.
func (p *Plan) staging() shape {
	s := p.natural("_pawl_stage_" + digest(p.source)[:20])
	if !p.shape.digested() {
		s.columns = slices.Clone(p.fields)
		s.ident = identity{columns: p.shape.ident.columns, source: true}
	}
	return s
}

// shape is a table as far as a plan writes it.
type shape struct {
	name    string
	own     []column // Pawl's, with the same value in all rows of a write
	columns []column // what is bound for each row: the fields, and colRow
	ident   identity
}

// identity is what tells the rows of a source apart: a unique index of the
// table has just these columns.
type identity struct {
	columns []string // without colSource
	source  bool     // the index has colSource
}

// digest makes rows of this shape known by the digest of their values.
func (s *shape) digest() {
	s.columns = append(s.columns, column{name: colRow, kind: spec.Text})
	s.ident = identity{columns: []string{colRow}, source: true}
}

func (s *shape) digested() bool { return slices.Equal(s.ident.columns, []string{colRow}) }

// positions finds the identity among the bound columns.
func (s *shape) positions() []int {
	out := make([]int, len(s.ident.columns))
	for i, name := range s.ident.columns {
		out[i] = slices.IndexFunc(s.columns, func(c column) bool { return c.name == name })
	}
	return out
}

// conflict is the index that ON CONFLICT names.
func (s *shape) conflict() string {
	names := s.ident.columns
	if s.ident.source {
		names = append([]string{colSource}, names...)
	}
	return "(" + list(names) + ")"
}

// written lists the columns of an insert: Pawl's own and then the bound ones.
func (s *shape) written() string {
	var names []string
	for _, c := range slices.Concat(s.own, s.columns) {
		names = append(names, c.name)
	}
	return list(names)
}

// parameter is where a statement finds the value of one of Pawl's columns.
func parameter(own column) string { return "$" + strconv.Itoa(argument(own)) }

// argument is which argument of a write is the value of one of Pawl's columns,
// counted from 1: source, at and run come first.
func argument(own column) int {
	switch own.name {
	case colSource:
		return 1
	case colRun:
		return 3
	}
	return 2
}

// compared are the bound columns that can differ in rows of one identity.
func (s *shape) compared() []int {
	var out []int
	for i, c := range s.columns {
		if !slices.Contains(s.ident.columns, c.name) {
			out = append(out, i)
		}
	}
	return out
}

// quote makes an identifier of any name, so that none is ever SQL.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote(n)
	}
	return strings.Join(quoted, ", ")
}

// digest is a short name for any text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
