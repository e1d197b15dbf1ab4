package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/calendar"
	calendarspec "github.com/pawlrun/pawl/internal/calendar/spec"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/execution/work"
	hookspec "github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/price"
	graphspec "github.com/pawlrun/pawl/internal/schedule/spec"
	"github.com/pawlrun/pawl/internal/source"
	sourcespec "github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// watchEvery is how often the folders are looked at for changes.
const watchEvery = time.Second

// mark is how a file is known to have changed.
type mark struct {
	at   time.Time
	size int64
}

// folders are the definitions that the server was started with, as they were
// last applied.
type folders struct {
	*server
	seen  map[string]mark
	wrong map[string]bool // files that were refused
}

// applyDefinitions applies what is in the folders that the server was started
// with. What is wrong with a file is told with its place, and changes nothing:
// the version that is in force stays.
func (s *server) applyDefinitions(ctx context.Context) (*folders, error) {
	f := &folders{s, map[string]mark{}, map[string]bool{}}
	return f, f.applyChanged(ctx)
}

// watch applies files that change until the context ends. A file that goes away
// deletes nothing: that is for people to say.
func (f *folders) watch(ctx context.Context) {
	if len(f.cfg.Dirs) == 0 {
		return
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := f.applyChanged(ctx); err != nil && ctx.Err() == nil {
				f.log.Error("definitions cannot be applied", "err", err)
			}
		}
	}
}

// applyChanged applies every file that is new or has changed.
func (f *folders) applyChanged(ctx context.Context) error {
	there := map[string]bool{}
	var paths []string
	for _, dir := range f.cfg.Dirs {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := entry.Name()
			if entry.IsDir() && path != dir && (strings.HasPrefix(name, ".") || name == "node_modules") {
				return filepath.SkipDir
			}
			if entry.IsDir() || strings.HasPrefix(name, ".") || !isDefinition(name) {
				return nil
			}
			there[path], paths = true, append(paths, path)
			return nil
		})
		if err != nil {
			return &pawl.Error{Code: pawl.CodeInvalid, Op: "apply definitions", Msg: "the folder " + dir + " cannot be read", Err: err}
		}
	}
	for _, path := range paths { // others name calendars and sources, whatever their files are called
		if err := f.namedByOthers(ctx, path); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if err := f.file(ctx, path); err != nil {
			return err
		}
	}
	for path := range f.seen {
		if !there[path] {
			delete(f.seen, path)
			f.log.Warn("a file of definitions is gone; what it defined stays until it is deleted", "file", path)
		}
	}
	return nil
}

func isScript(name string) bool {
	return strings.HasSuffix(name, ".workflow.ts") || strings.HasSuffix(name, ".workflow.js")
}

func isDefinition(name string) bool {
	return isScript(name) || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// namedByOthers applies the calendars and sources of a file unless it is as it was.
// What is wrong with it is told when the file is applied. A new one may be what other
// files were refused for.
func (f *folders) namedByOthers(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil || isScript(path) || f.seen[path] == (mark{info.ModTime(), info.Size()}) {
		return nil //nolint:nilerr // it went away at this moment
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	list, _ := definition.Read(path, text) // its faults are told when it is applied
	for _, doc := range list {
		if doc.Kind != calendarspec.Kind && doc.Kind != sourcespec.Kind {
			continue
		}
		faults, err := f.document(ctx, path, doc)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && len(faults) == 0 {
			for other := range f.wrong {
				delete(f.seen, other)
			}
		}
	}
	return nil
}

func (f *folders) calendar(ctx context.Context, path string, doc definition.Document) ([]pawl.Field, error) {
	in, faults := calendarspec.FromDocument(doc)
	if len(faults) > 0 {
		return faults, nil
	}
	return nil, f.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		what, _, _, err := f.schedules.Calendars().Apply(ctx, tx, in, "serve")
		if err == nil && what != calendar.Unchanged {
			tx.AfterCommit(func() { f.applied(doc.Kind, in.Name, what, path) })
		}
		return err
	})
}

// file applies one file unless it is as it was.
func (f *folders) file(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil //nolint:nilerr // it went away at this moment
	}
	now := mark{info.ModTime(), info.Size()}
	if f.seen[path] == now {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if isScript(path) {
		err = f.script(ctx, path, string(text))
	} else {
		err = f.documents(ctx, path, text)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok && (e.Code == pawl.CodeInvalid || e.Code == pawl.CodeTooLarge || e.Code == pawl.CodeConflict || e.Code == pawl.CodeNotFound || e.Code == pawl.CodeForbidden) {
		f.refused(path, e)
		f.wrong[path], err = true, nil
	} else if err == nil {
		delete(f.wrong, path)
	}
	if err == nil {
		f.seen[path] = now
	}
	return err
}

// refused tells what is wrong with a file; what was in force stays.
func (f *folders) refused(path string, e *pawl.Error) {
	faults := slices.Clone(e.Fields)
	if len(faults) == 0 {
		faults = []pawl.Field{{Message: e.Msg}}
	}
	if len(faults) == 1 && faults[0].Hint == "" { // of several, it is not known which one it is about
		faults[0].Hint = e.Hint
	}
	for _, field := range faults {
		f.log.Error("a definition is not valid", "file", path, "fault", field.String())
	}
}

func (f *folders) script(ctx context.Context, path, text string) error {
	out, err := f.workflows.Apply(ctx, workflow.Deploy{Filename: filepath.Base(path), Script: text, By: "serve"})
	if err == nil {
		f.applied("workflow", out.Name, out.What, path)
	}
	return err
}

func (f *folders) applied(kind, name, what, path string) {
	f.log.Info("a definition of a folder was applied", "kind", kind, "name", name, "what", what, "file", path)
}

// documents applies the definitions of a YAML file. One that has a fault keeps
// none of the others from being applied.
func (f *folders) documents(ctx context.Context, path string, text []byte) error {
	list, err := definition.Read(path, text)
	faults := fieldsOf(err)
	for _, doc := range list {
		more, err := f.document(ctx, path, doc)
		if err != nil {
			return err
		}
		faults = append(faults, more...)
	}
	return definition.Invalid("apply definitions", faults)
}

func fieldsOf(err error) []pawl.Field {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok && len(e.Fields) > 0 {
		return e.Fields
	}
	return []pawl.Field{{Message: err.Error()}}
}

func (f *folders) document(ctx context.Context, path string, doc definition.Document) ([]pawl.Field, error) {
	switch doc.Kind {
	case sourcespec.Kind:
		d, faults := sourcespec.FromDocument(doc)
		if len(faults) > 0 {
			return faults, nil
		}
		return nil, f.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			out, err := f.sources.Apply(ctx, tx, d, "serve")
			if err == nil && out.What != source.Unchanged {
				tx.AfterCommit(func() { f.applied(doc.Kind, d.Name, out.What, path) })
			}
			return err
		})
	case graphspec.Kind:
		in, faults := graphspec.FromDocument(doc)
		if len(faults) > 0 {
			return faults, nil
		}
		if in.Run != nil {
			folder, err := filepath.Abs(filepath.Dir(path))
			if err != nil {
				return nil, err
			}
			*in.Run = work.InFolder(*in.Run, folder)
		}
		return nil, f.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			owner, err := userstore.In(tx).UserByName(ctx, adminName)
			if err != nil {
				return err
			}
			what, _, _, err := f.schedules.Apply(ctx, tx, owner.ID, in, "serve")
			if err == nil {
				tx.AfterCommit(func() { f.applied(doc.Kind, in.Name, what, path) })
			}
			return err
		})
	case calendarspec.Kind:
		return f.calendar(ctx, path, doc)
	case hookspec.Kind:
		return f.hook(ctx, path, doc)
	case "connection", "executor", "provider", price.Kind:
		return nil, nil // read at start, from the folders that are named for them
	}
	return []pawl.Field{doc.Fault("/kind", "unknown kind %s. %s", pawl.Quote(doc.Kind),
		pawl.Suggest(doc.Kind, []string{sourcespec.Kind, graphspec.Kind, calendarspec.Kind, hookspec.Kind, "connection", "executor", "provider", price.Kind}, "It is source, schedule, calendar or hook."))}, nil
}

// hook applies a hook. Its secrets may be files, or stand in the file itself; they
// stay in memory.
func (f *folders) hook(ctx context.Context, path string, doc definition.Document) ([]pawl.Field, error) {
	d, faults := hookspec.FromDocument(doc)
	if len(faults) > 0 {
		return faults, nil
	}
	secrets, faults := d.ResolveFile(doc, os.Getenv)
	if len(faults) > 0 {
		return faults, nil
	}
	return nil, f.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		owner, err := userstore.In(tx).UserByName(ctx, adminName)
		if err != nil {
			return err
		}
		out, err := f.hooks.Apply(ctx, tx, d, secrets, owner.ID, "serve")
		if err == nil {
			tx.AfterCommit(func() { f.applied(doc.Kind, d.Name, out.What, path) })
		}
		return err
	})
}
