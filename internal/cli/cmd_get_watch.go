package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// watch shows what there is, and then every change as a row of its own, until
// the command is interrupted, which is its regular end.
func (g *getter) watch(ctx context.Context) error {
	rules := g.kind.watch
	if g.out.format == formatYAML {
		return usageError("Use -o json: one line for each change.", "a stream of changes cannot be YAML")
	}
	w := &watching{getter: g, sheet: newSheet(g.p, g.kind.shown(g.out.format)), last: map[string]json.RawMessage{}}
	watcher := client.Watcher{Kind: strings.Join(rules.events, ","), CatchUp: w.catchUp}
	switch {
	case rules.subject != nil: // the events are about the things themselves
		watcher.ID = g.name
	case rules.changed == nil && rules.reread == nil:
		watcher.Every = rereadEvery
	}
	watcher.Event = func(e client.StreamEvent) error { return w.event(ctx, e) }
	return g.client.Watch(ctx, watcher)
}

// rereadEvery is how often a list is read again while nothing is heard that may
// have changed it.
const rereadEvery = 2 * time.Second

// mostRemembered bounds the memory of a long watch. When it is full, a row may
// be shown once more after a lost connection.
const mostRemembered = 10_000

// watching is what a watch has shown so far.
type watching struct {
	*getter
	sheet  *sheet
	titled bool
	last   map[string]json.RawMessage // by id
	fields []string                   // that the things have by definition; of kinds without columns of their own
}

// catchUp shows what there is, and after a lost connection what has changed.
func (w *watching) catchUp(ctx context.Context) error {
	if w.name != "" && !w.kind.listed {
		raw, err := getOne(ctx, w.client, w.kind, w.name)
		if err != nil {
			return err
		}
		return w.print(raw)
	}
	items, _, err := w.list(ctx)
	if err != nil {
		return err
	}
	if w.kind.row == nil && w.fields == nil {
		w.fields = w.definedFields(ctx)
	}
	return w.print(items...)
}

// event shows the thing that an event is about.
func (w *watching) event(ctx context.Context, e client.StreamEvent) error {
	rules := w.kind.watch
	if !slices.Contains(rules.events, e.Type) {
		return nil
	}
	if rules.reread != nil {
		items, err := rules.reread(ctx, w, e)
		if err != nil {
			return err
		}
		return w.print(items...)
	}
	if rules.changed != nil {
		return w.readAgain(ctx, e)
	}
	raw, err := rules.subject(e.Data)
	if err != nil || !w.matches(raw) {
		return err
	}
	return w.print(raw)
}

// readAgain shows a thing that an event names but does not carry.
func (w *watching) readAgain(ctx context.Context, e client.StreamEvent) error {
	name, err := w.kind.watch.changed(e)
	if err != nil || name == "" || (w.name != "" && w.name != name) {
		return err
	}
	raw, err := getOne(ctx, w.client, w.kind, name)
	if errors.Is(err, pawl.ErrNotFound) {
		w.p.say("%s %s is gone.", w.kind.singular, oneLine(name))
		return nil
	}
	if err != nil || !w.wanted(raw) {
		return err
	}
	return w.print(raw)
}

// matches reports whether a thing passes the filters of the list.
func (w *watching) matches(raw json.RawMessage) bool {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	for name, wanted := range w.query {
		if value, _ := fields[name].(string); value != wanted[0] {
			return false
		}
	}
	return true
}

// print writes the things that are not as they were when last written.
func (w *watching) print(items ...json.RawMessage) error {
	changed, err := w.news(items)
	if err != nil || len(changed) == 0 {
		return err
	}
	if w.out.machine() {
		for _, raw := range changed {
			if _, err := fmt.Fprintf(w.p.Stdout, "%s\n", compactJSON(raw)); err != nil {
				return err
			}
		}
		return nil
	}
	titles := !w.titled
	w.titled = true
	if w.kind.row == nil {
		return writeFields(w.p, changed, w.fields, w.out.format, titles)
	}
	var rows [][]string
	now := time.Now()
	for _, raw := range changed {
		cells, err := w.kind.cells(raw, now, w.out.format)
		if err != nil {
			return err
		}
		rows = append(rows, cells)
	}
	return w.sheet.write(w.p.Stdout, rows, titles)
}

// news are the things that are not as they were when last written. What has no
// id is told apart by all that it says.
func (w *watching) news(items []json.RawMessage) (changed []json.RawMessage, err error) {
	if len(w.last) >= mostRemembered {
		clear(w.last)
	}
	for _, raw := range items {
		if raw, err = w.brief(raw); err != nil {
			return nil, err
		}
		same := raw
		if w.kind.watch.compare != nil {
			if same, err = w.kind.watch.compare(raw); err != nil {
				return nil, err
			}
		}
		id := idOf(raw)
		if id == "" {
			id = string(same)
		}
		if !bytes.Equal(w.last[id], same) {
			w.last[id] = same
			changed = append(changed, raw)
		}
	}
	return changed, nil
}

// brief is a thing as it is compared and written.
func (w *watching) brief(raw json.RawMessage) (json.RawMessage, error) {
	if w.kind.watch.brief == nil {
		return raw, nil
	}
	return w.kind.watch.brief(raw)
}

func idOf(raw json.RawMessage) string {
	var thing struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(raw, &thing) // without an id it is shown like any other
	return thing.ID
}
