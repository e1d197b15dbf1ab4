package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/visible"
)

// runSource fetches the first pages of a source and writes nothing.
func (t *trying) runSource(ctx context.Context, p *Process, file string) error {
	d, err := t.chooseSource(p, file)
	if err != nil {
		return err
	}
	providers, err := quota.Load(p.paths(t.providers), p.paths(t.providerDirs), p.Getenv)
	if err != nil {
		return err
	}
	allow, err := outbound.ParsePrefixes(t.private)
	if err != nil {
		return err
	}
	client, err := outbound.New(outbound.Config{AllowPrivate: allow, UserAgent: "pawl-test"})
	if err != nil {
		return err
	}
	defer client.Close()
	fetcher := fetch.New(fetch.Options{Client: client, Book: quota.NewNoLimits(providers, client, nil)})
	tried, err := source.Try(ctx, fetcher, d, source.TryLimits{Pages: t.pages, Rows: t.rows, Spool: os.TempDir()})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if wrong := t.reportSource(p, &d, &tried, err); wrong != nil {
		return wrong
	}
	return tryError(d.Name, err)
}

// chooseSource reads the source that is meant: the only one of a file, or the
// one with the name.
func (t *trying) chooseSource(p *Process, file string) (d spec.Definition, err error) {
	read, err := readYAML(definition{shown: file, path: p.path(file)})
	if err != nil {
		return d, &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("%s cannot be read", file), Err: err}
	}
	var found []spec.Definition
	var names []string
	results, _ := read.check(nil)
	wrong := false
	for _, c := range results {
		if !c.OK && (t.name == "" || c.Name == "" || c.Name == t.name) {
			wrong = true
			for _, f := range c.Errors {
				p.sayFault(file, "", f)
			}
		}
	}
	if wrong {
		return d, &pawl.Error{Code: pawl.CodeInvalid, Msg: "the definition has errors"}
	}
	for _, doc := range read.documents {
		if doc.Kind != spec.Kind || (t.name != "" && doc.Name != t.name) {
			continue
		}
		one, _ := spec.FromDocument(doc) // it was checked above
		found, names = append(found, one), append(names, one.Name)
	}
	switch {
	case len(found) == 0 && t.name != "":
		return d, &pawl.Error{Code: pawl.CodeNotFound, Msg: fmt.Sprintf("there is no source %q in %s", t.name, file)}
	case len(found) == 0:
		return d, &pawl.Error{Code: pawl.CodeInvalid, Msg: "there is no source in " + file, Hint: "pawl test takes workflows and sources."}
	case len(found) > 1:
		return d, usageError("Choose one with --name: "+strings.Join(names, ", "), "%s has %d sources", file, len(found))
	}
	return found[0], nil
}

// paths are where the files are that the user named.
func (p *Process) paths(names []string) []string {
	var list []string
	for _, name := range names {
		list = append(list, p.path(name))
	}
	return list
}

// tryError says why a page could not be had.
func tryError(name string, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*fetch.Error](err)
	if !ok {
		return err
	}
	hint := e.Hint
	if e.RetryAfter > 0 {
		hint = strings.TrimSpace(hint + " The other side asks to wait for " + compact(e.RetryAfter) + ".")
	}
	return &pawl.Error{Code: pawl.CodeInvalid, Msg: fmt.Sprintf("source %s cannot be fetched: %s (%s, %s)", name, e.Msg, e.Class, e.Code), Hint: hint}
}

// triedSource is what a source would write, for programs.
type triedSource struct {
	Name     string           `json:"name"`
	Rows     []map[string]any `json:"rows"`
	RowsRead int              `json:"rowsRead"`
	Rejects  []triedReject    `json:"rejects"`
	Rejected int              `json:"rejected"`
	Requests []triedRequest   `json:"requests"`
	More     bool             `json:"more"` // there are more pages
	Since    string           `json:"since,omitempty"`
	Mark     string           `json:"mark,omitempty"`
	Error    *triedFault      `json:"error,omitempty"`
}

type triedReject struct {
	Row    int    `json:"row"`
	Reason string `json:"reason"`
	Raw    string `json:"raw"`
}

type triedRequest struct {
	URL    string `json:"url"`
	Status int    `json:"status"`
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"`
	Millis int64  `json:"millis"`
}

type triedFault struct {
	Code    string `json:"code"`
	Class   string `json:"class"`
	Message string `json:"message"`
}

func triedSourceOf(d *spec.Definition, t *source.Tried, err error) triedSource {
	out := triedSource{Name: d.Name, Rows: []map[string]any{}, RowsRead: t.Read, Rejects: []triedReject{}, Rejected: t.Rejected, Requests: []triedRequest{}, More: t.More, Since: t.Since, Mark: t.Mark}
	for _, row := range t.Rows {
		fields := map[string]any{}
		for i, value := range row {
			fields[columnOf(d, i)] = triedValue(d, i, value)
		}
		out.Rows = append(out.Rows, fields)
	}
	for _, r := range t.Rejects {
		out.Rejects = append(out.Rejects, triedReject(r))
	}
	for _, r := range t.Requests {
		out.Requests = append(out.Requests, triedRequest{r.URL, r.Status, r.Bytes, r.Rows, r.Took.Milliseconds()})
	}
	if e, ok := errors.AsType[*fetch.Error](err); ok {
		out.Error = &triedFault{e.Code, string(e.Class), e.Msg}
	}
	return out
}

// columnOf is the name of a value's column; after the fields comes the row as
// it came.
func columnOf(d *spec.Definition, i int) string {
	if i < len(d.Response.Fields) {
		return d.Response.Fields[i].Target
	}
	return "_raw"
}

// triedValue is a value as JSON has it.
func triedValue(d *spec.Definition, i int, value any) any {
	switch v := value.(type) {
	case time.Time:
		if i < len(d.Response.Fields) && d.Response.Fields[i].Type == spec.Date {
			return v.Format(time.DateOnly)
		}
		return pawl.FormatTime(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) { // JSON has no such numbers
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return value
}

// reportSource tells what was fetched, also where it ended early.
func (t *trying) reportSource(p *Process, d *spec.Definition, tried *source.Tried, failed error) error {
	list := triedSourceOf(d, tried, failed)
	if t.out.machine() {
		raw, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("write result: %w", err)
		}
		return writeMachine(p.Stdout, t.out.format, raw)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "Source %s, with nothing written:\n", d.Name)
	for i, r := range list.Requests {
		fmt.Fprintf(&b, "  page %d: GET %s -> %d, %s, %s in %d ms\n", i+1, oneLine(r.URL), r.Status, plural(r.Rows, "row"), byteWords(r.Bytes), r.Millis)
	}
	if len(tried.Rows) > 0 {
		b.WriteByte('\n')
		if err := writeTried(p, &b, d, list.Rows); err != nil {
			return err
		}
	}
	list.writeTo(&b)
	_, err := p.Stdout.Write(b.Bytes())
	return err
}

// writeTried writes the mapped rows as a table, in the order of the definition.
func writeTried(p *Process, b *bytes.Buffer, d *spec.Definition, rows []map[string]any) error {
	var columns []column
	for _, f := range d.Response.Fields {
		columns = append(columns, column{title: f.Target, flex: true, least: 8})
	}
	cells := make([][]string, len(rows))
	for i, row := range rows {
		for _, c := range columns {
			raw, err := json.Marshal(row[c.title])
			if err != nil {
				return fmt.Errorf("write row: %w", err)
			}
			cells[i] = append(cells[i], fieldText(raw))
		}
	}
	return newSheet(p, columns).write(b, cells, true)
}

// writeTo counts what was seen, and shows what did not fit.
func (t triedSource) writeTo(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n%s read, %d shown; %d rejected.\n", plural(t.RowsRead, "row"), len(t.Rows), t.Rejected)
	for _, r := range t.Rejects {
		fmt.Fprintf(b, "  row %d: %s: %s\n", r.Row, oneLine(visible.Text(r.Reason)), oneLine(visible.Text(cut(r.Raw, 120))))
	}
	if t.Since != "" {
		fmt.Fprintf(b, "Asked for what is new since %s.\n", oneLine(t.Since))
	}
	if t.Mark != "" {
		fmt.Fprintf(b, "The next fetch would begin after %s.\n", oneLine(t.Mark))
	}
	if t.More {
		b.WriteString("There are more pages; --pages fetches more of them.\n")
	}
}

// cut shortens a text to so many characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(slices.Concat(runes[:most], []rune("…")))
	}
	return text
}
