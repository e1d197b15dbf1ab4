package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	calendarspec "github.com/pawlrun/pawl/internal/calendar/spec"
	graphspec "github.com/pawlrun/pawl/internal/schedule/spec"
	sourcespec "github.com/pawlrun/pawl/internal/source/spec"
)

// sendAll sends everything until something is refused, each after what it refers to:
// calendars come first, because everything may name them; then workflows, because
// sources publish to them and schedules run them, but those that need sources come after
// these.
func (a *applier) sendAll(ctx context.Context, workflows []definition, names []string) error {
	scripts := func(needing bool) error {
		for i, file := range workflows {
			if a.needing[names[i]] != needing {
				continue
			}
			if err := a.send(ctx, file, names[i]); err != nil {
				return err
			}
		}
		return nil
	}
	documents := func(chosen func(kind string) bool) error {
		for _, doc := range a.documents {
			if !chosen(doc.kind) {
				continue
			}
			if err := a.sendDocument(ctx, doc); err != nil {
				return err
			}
		}
		return nil
	}
	for _, step := range []func() error{
		func() error { return documents(func(kind string) bool { return kind == calendarspec.Kind }) },
		func() error { return scripts(false) },
		func() error { return documents(func(kind string) bool { return kind == sourcespec.Kind }) },
		func() error { return scripts(true) },
		func() error {
			return documents(func(kind string) bool { return kind != calendarspec.Kind && kind != sourcespec.Kind })
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// send puts one workflow in force and says what that did.
func (a *applier) send(ctx context.Context, file definition, name string) error {
	source, err := os.ReadFile(file.path)
	if err != nil {
		return fmt.Errorf("apply %s: %w", file.shown, err)
	}
	// The folders of this machine mean nothing to others.
	raw, err := a.put(ctx, client.WorkflowPath(name), func(dryRun bool) (url.Values, any) {
		return a.assuming(nil, string(source)), client.ScriptRequest{Script: string(source), Filename: filepath.Base(file.shown), DryRun: dryRun}
	})
	if err != nil {
		return refusedFile(file.shown, err)
	}
	var done client.Deployment
	if err := json.Unmarshal(raw, &done); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	for _, w := range done.Warnings {
		message := strings.TrimPrefix(w.Message, fmt.Sprintf("%s:%d:%d: ", filepath.Base(file.shown), w.Line, w.Column))
		a.warn(file.shown, fault{w.Line, w.Column, message, string(w.Hint)})
	}
	return a.report(raw, string(pawl.KindWorkflow), name, done.What, func() (string, error) {
		return unifiedDiff("deployed/"+name, file.shown, string(done.PreviousScript), string(source)), nil
	})
}

// sendDocument puts a source or a schedule in force and says what that did.
func (a *applier) sendDocument(ctx context.Context, doc applicable) error {
	raw, err := a.put(ctx, doc.path, func(dryRun bool) (url.Values, any) {
		switch {
		case !dryRun:
			return nil, doc.body
		case doc.kind != sourcespec.Kind && doc.kind != graphspec.Kind:
			return url.Values{"dryRun": {"true"}}, doc.body
		}
		raw, _ := json.Marshal(doc.body) // as it is sent
		return a.assuming(url.Values{"dryRun": {"true"}}, string(raw)), doc.body
	})
	if err != nil {
		return fmt.Errorf("apply %s: %s %s: %w", doc.file.shown, doc.kind, doc.name, doc.placed(err))
	}
	var done sent
	if err := json.Unmarshal(raw, &done); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	for _, w := range done.Warnings {
		a.warn(doc.file.shown, fault{Message: w.Message, Hint: string(w.Hint)})
	}
	return a.report(raw, doc.kind, doc.name, done.What, func() (string, error) {
		before, after, err := done.versions()
		return unifiedDiff("deployed/"+doc.name, doc.file.shown, before, after), err
	})
}

// assuming adds to the query of a dry run what the definition refers to and would be
// there by then, because this very call brings it.
func (a *applier) assuming(query url.Values, definition string) url.Values {
	var list []string
	for _, thing := range a.assumed {
		if _, name, _ := strings.Cut(thing, ":"); strings.Contains(definition, name) {
			list = append(list, thing)
		}
	}
	if len(list) == 0 {
		return query
	}
	all := url.Values{"assume": {strings.Join(list, ",")}}
	maps.Copy(all, query)
	return all
}

// put sends one definition. Where a diff is shown it is asked for first, and what
// is written then takes the place of nothing else than what the diff was made
// from: a change that somebody made in between is not overwritten unseen.
func (a *applier) put(ctx context.Context, path string, request func(dryRun bool) (url.Values, any)) (json.RawMessage, error) {
	header := http.Header{}
	if a.wantsDiff() && !a.dryRun {
		query, body := request(true)
		_, tag, err := a.client.SendTagged(ctx, client.Request{Method: http.MethodPut, Path: path, Query: query, Body: body})
		switch {
		case err != nil:
			return nil, err
		case tag == "":
			header.Set("If-None-Match", "*")
		default:
			header.Set("If-Match", tag)
		}
	}
	query, body := request(a.dryRun)
	return a.client.Send(ctx, client.Request{Method: http.MethodPut, Path: path, Query: query, Header: header, Body: body})
}
