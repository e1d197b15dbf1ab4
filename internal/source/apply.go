package source

import (
	"context"
	"encoding/json"
	"errors"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/timing"
)

// What applying a definition did.
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
)

// Applied is what applying a definition did.
type Applied struct {
	Source   sourcestore.Source
	What     string
	Previous json.RawMessage // the definition that was in force; nil for a new one
}

// errDry undoes a transaction that was only tried.
var errDry = errors.New("dry run")

// Apply makes a source or changes its definition, in the caller's transaction.
// The same definition changes nothing. A run that is under way goes on with the
// one that it began with.
func (s *Service) Apply(ctx context.Context, tx *store.Tx, d spec.Definition, by string) (Applied, error) {
	plan, err := s.holdCalendars(ctx, tx, d) // before sources, as whoever changes a calendar does
	if err != nil {
		return Applied{}, err
	}
	was, err := sourcestore.In(tx).HoldSource(ctx, d.Name)
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		return Applied{}, err
	}
	if err == nil && !d.StatusGiven {
		d.Status = was.Status // a definition that says nothing changes nothing
	}
	raw, wrong := json.Marshal(d)
	if wrong != nil {
		return Applied{}, wrong
	}
	if err != nil {
		return s.create(ctx, tx, d, raw, plan, by)
	}
	if !was.DeletingAt.IsZero() {
		return Applied{}, lane.Refuse("apply source", "deleting", "source "+was.Name+" is being deleted", "Try again when it is gone.")
	}
	if was.Version == d.Version() {
		return Applied{Source: was, What: Unchanged, Previous: was.Definition}, nil
	}
	if err := s.checkTable(ctx, tx, d, was.ID); err != nil {
		return Applied{}, err
	}
	now, err := sourcestore.In(tx).UpdateSource(ctx, was.ID, raw, d.Version(), d.Status, by)
	if err != nil {
		return Applied{}, err
	}
	if now, err = s.planSource(ctx, tx, now, d, was.Definition, plan); err != nil {
		return Applied{}, err
	}
	return Applied{Source: now, What: Updated, Previous: was.Definition}, s.applied(ctx, tx, now, "source.update", by)
}

func (s *Service) create(ctx context.Context, tx *store.Tx, d spec.Definition, raw json.RawMessage, plan timing.Plan, by string) (Applied, error) {
	if err := s.checkTable(ctx, tx, d, ""); err != nil {
		return Applied{}, err
	}
	now, err := sourcestore.In(tx).InsertSource(ctx, sourcestore.Source{Name: d.Name, Definition: raw, Version: d.Version(), Status: d.Status}, by)
	if err != nil {
		return Applied{}, err
	}
	if now, err = s.planSource(ctx, tx, now, d, nil, plan); err != nil {
		return Applied{}, err
	}
	// The retry state is there from now on, and its first period begins.
	if _, err := runstore.In(tx).HoldRetry(ctx, pawl.KindSource, d.Name); err != nil {
		return Applied{}, err
	}
	return Applied{Source: now, What: Created}, s.applied(ctx, tx, now, "source.create", by)
}

// checkTable makes the table, or finds out before anything is kept that rows
// would not fit into the one that is there. id is that of the source, empty for
// a new one.
func (s *Service) checkTable(ctx context.Context, tx *store.Tx, d spec.Definition, id string) error {
	if d.Write.Connection != "" {
		return s.checkConnection(d.Write.Connection) // its table is looked at when the fetch begins
	}
	plan, err := table.New(s.db.Name(), d)
	if err != nil {
		return err
	}
	change, err := plan.Ensure(ctx, tx)
	if err != nil || change.Created {
		return err
	}
	known, err := s.writersOf(ctx, tx, d, id)
	if err != nil {
		return err
	}
	return plan.Agree(known, change)
}

// writersOf are the definitions that wrote to the table of one: its own earlier
// ones, the newest first, and those of others that are in force.
func (s *Service) writersOf(ctx context.Context, tx *store.Tx, d spec.Definition, id string) (known []spec.Definition, err error) {
	var stored []json.RawMessage
	if id != "" {
		versions, err := sourcestore.In(tx).ListSourceVersions(ctx, id, 0, maxVersions)
		if err != nil {
			return nil, err
		}
		for _, v := range versions {
			stored = append(stored, v.Definition)
		}
	}
	others, err := sourcestore.In(tx).SourcesOfTable(ctx, d.Table, d.Name)
	if err != nil {
		return nil, err
	}
	for _, raw := range append(stored, others...) {
		was, err := definitionOf(d.Name, raw)
		if err != nil {
			return nil, err
		}
		known = append(known, was)
	}
	return known, nil
}

// checkConnection refuses a connection that must not be written with. Whether it
// is there at all, and a database, is looked at when the fetch begins: it can
// come later.
func (s *Service) checkConnection(name string) error {
	if s.cfg.Database == nil {
		return nil
	}
	_, err := s.cfg.Database(name)
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Reason == ReasonDenied {
		return e
	}
	return nil
}

func (s *Service) applied(ctx context.Context, tx *store.Tx, src sourcestore.Source, action, by string) error {
	if err := tx.Audit(ctx, by, action, "source:"+src.Name, map[string]string{"version": src.Version}); err != nil {
		return err
	}
	d, err := definitionOf(src.Name, src.Definition)
	if err != nil {
		return err
	}
	if err := runstore.In(tx).SetKeep(ctx, pawl.KindSource, src.Name, terms.KeepText(d.Keep)); err != nil {
		return err
	}
	if err := runstore.In(tx).SetExpect(ctx, pawl.KindSource, src.Name, terms.ExpectText(d.Expect)); err != nil {
		return err
	}
	s.cfg.Emit(tx, lane.Change{Ref: refOf(src.Name), What: "applied"})
	return s.changed(ctx, tx, &src)
}

// DryRun tells what applying a definition would do, and changes nothing.
func (s *Service) DryRun(ctx context.Context, d spec.Definition) (out Applied, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		if out, err = s.Apply(ctx, tx, d, ""); err != nil {
			return err
		}
		return errDry
	})
	if errors.Is(err, errDry) {
		err = nil
	}
	return out, err
}
