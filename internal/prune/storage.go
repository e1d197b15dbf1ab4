package prune

import (
	"cmp"
	"context"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/prunestore"
)

// Table is how large a table is, and what it grows by.
type Table struct {
	store.TableSize
	PerDay int64 // bytes; 0 while it is not known
}

// LaneSize is about how much belongs to a lane.
type LaneSize struct {
	Lane  retention.Lane
	Name  string
	Rows  int64
	Bytes int64
	Keep  string // what its definition says of how long things are kept; empty: nothing
}

// Storage is how large the database is.
type Storage struct {
	Database string // sqlite or postgres
	Bytes    int64
	Free     int64 // of that, what is empty and is used again
	PerDay   int64 // bytes; 0 while it is not known
	Room     int64 // bytes that the disk has left; -1 if nobody can tell
	FullAt   time.Time
	Tables   []Table    // the largest first
	Lanes    []LaneSize // the largest first
	Keep     retention.Ages
}

// growth is over how long growth is measured, and at least how long it takes to
// say something.
const (
	growth      = 7 * 24 * time.Hour
	growthLeast = time.Hour
)

// measured is for how long what was measured of a large database is told again: samples
// of many tables are read from the disk for it.
const measured = time.Minute

// Storage measures the database: what is small exactly, what is large by
// statistics and samples, so that it takes about as long however much there is.
func (s *Service) Storage(ctx context.Context) (Storage, error) {
	s.measuring.Lock()
	defer s.measuring.Unlock()
	if !s.measuredAt.IsZero() && time.Since(s.measuredAt) < measured {
		return s.measured.clone(), nil
	}
	out, err := s.measure(ctx)
	if err == nil && out.Bytes > s.small {
		s.measured, s.measuredAt = out, time.Now()
	}
	return out.clone(), err
}

// smallDatabase is up to how many bytes a database is measured each time.
const smallDatabase = 256 << 20

// remeasure forgets what was measured: something was removed.
func (s *Service) remeasure() {
	s.measuring.Lock()
	defer s.measuring.Unlock()
	s.measuredAt = time.Time{}
}

// clone is for callers who sort or cut it.
func (s Storage) clone() Storage {
	s.Tables, s.Lanes = slices.Clone(s.Tables), slices.Clone(s.Lanes)
	return s
}

func (s *Service) measure(ctx context.Context) (out Storage, err error) {
	sizes, err := s.db.Storage(ctx)
	if err != nil {
		return out, err
	}
	out = Storage{Database: s.db.Name(), Bytes: sizes.Bytes, Free: sizes.Free, Room: -1, Keep: s.Keep()}
	var before map[string]prunestore.Day
	err = s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		if before, err = prunestore.In(tx).DaysSince(ctx, tx.Now.Add(-growth)); err != nil {
			return err
		}
		out.Lanes, err = laneSizes(ctx, tx, sizes)
		return err
	})
	if err != nil {
		return out, err
	}
	now := time.Now()
	for _, t := range sizes.Tables {
		table := Table{TableSize: t}
		if was, ok := before[t.Name]; ok && now.Sub(was.At) >= growthLeast {
			table.PerDay = int64(float64(t.Bytes-was.Bytes) / (float64(now.Sub(was.At)) / float64(24*time.Hour)))
		}
		out.PerDay += table.PerDay
		out.Tables = append(out.Tables, table)
	}
	slices.SortFunc(out.Tables, func(a, b Table) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	if room, known := s.db.Room(); known {
		out.Room = room
		if out.PerDay > 0 {
			days := float64(room+out.Free) / float64(out.PerDay)
			out.FullAt = now.Add(time.Duration(min(days, 36500) * float64(24*time.Hour)))
		}
	}
	return out, nil
}

// laneSizes divides the growing tables among lanes.
func laneSizes(ctx context.Context, tx *store.Tx, sizes store.Storage) ([]LaneSize, error) {
	lanes, err := prunestore.In(tx).Lanes(ctx)
	if err != nil {
		return nil, err
	}
	of := map[retention.Lane]*LaneSize{}
	for _, l := range lanes {
		one := &LaneSize{Lane: retention.Lane{Kind: l.Kind, Lane: l.Lane}, Name: l.Name, Keep: l.Keep}
		of[one.Lane], of[retention.Lane{Kind: l.Kind, Lane: l.ID}] = one, one
	}
	for _, g := range prunestore.Groupings() {
		i := slices.IndexFunc(sizes.Tables, func(t store.TableSize) bool { return t.Name == g.Table })
		if i < 0 || sizes.Tables[i].Rows == 0 {
			continue
		}
		shares, err := tx.Shares(ctx, g, sizes.Tables[i])
		if err != nil {
			return nil, err
		}
		for _, s := range shares {
			if s.Key == "" { // what belonged to a run that is removed
				continue
			}
			lane := retention.Lane{Kind: pawl.Kind(s.Kind), Lane: s.Key}
			if of[lane] == nil { // it is deleted
				of[lane] = &LaneSize{Lane: lane, Name: s.Key}
			}
			of[lane].Rows += int64(s.Rows*float64(sizes.Tables[i].Rows) + 0.5)
			of[lane].Bytes += int64(s.Bytes*float64(sizes.Tables[i].Bytes) + 0.5)
		}
	}
	seen, out := map[*LaneSize]bool{}, []LaneSize{}
	for _, l := range of {
		if !seen[l] {
			seen[l] = true
			out = append(out, *l)
		}
	}
	slices.SortFunc(out, func(a, b LaneSize) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Lane.Kind, b.Lane.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// measureDay notes once a day how large tables are.
func (s *Service) measureDay(ctx context.Context) error {
	known := false
	err := s.db.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		known, err = prunestore.In(tx).HasDay(ctx)
		return err
	})
	if err != nil || known {
		return err
	}
	sizes, err := s.db.Storage(ctx)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return prunestore.In(tx).AddDay(ctx, sizes.Tables)
	}, store.Lazy)
}
