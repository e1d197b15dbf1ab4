package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Simulation is a database in memory that several handles have, each as if it
// were a process of its own: what PostgreSQL is to a cluster, or a file to one
// process after the other, in one process and in simulated time. It is for tests
// (internal/simulate). What is asked is asked in SQLite's words, one transaction
// at a time.
//
// One connection serves history after history, because making tables and
// preparing statements takes longer than a history: Begin starts one, and End
// forgets all that it wrote.
type Simulation struct {
	conn   *directLite
	shared bool
	turn   chan struct{} // full while somebody has the connection

	mu    sync.Mutex
	links []*simulatedLink // guarded by mu: that are open
}

// SimulatedProcess is what one handle does beside what the database does.
type SimulatedProcess struct {
	// Number is that of the process in ids.
	Number int64
	// Step is called before a transaction ("read", "write"), when what was read is on
	// its way ("answered"), after a commit and before anybody hears of it
	// ("committed"), before a message ("notify"), and before one is heard ("hear").
	// Its error is that of the transaction, which happened if it was committed. It
	// takes as long as the database takes to answer. The steps of one transaction are
	// given the same asker.
	Step func(ctx context.Context, what string, by *SimulatedAsker) error
	// Stale is told of a transaction that commits in the name of a fence that does
	// not hold.
	Stale func(f Fence)
	// Commit is whether the disk takes a transaction that is done; its error undoes
	// the transaction.
	Commit func() error
	// Now is the wall clock of the process, which transactions go by.
	Now func() time.Time
}

// SimulatedAsker is room for what a Step finds out of who asks, which takes longer
// than many a statement. It is known if somebody has found it out.
type SimulatedAsker struct {
	Path  uint64 // of the functions that led there
	Times uint64 // what a number that comes before the path is multiplied by
	Marks uint8
	Known bool
}

// simulatedLite is a handle.
type simulatedLite struct {
	*Simulation
	process SimulatedProcess
}

// NewSimulation makes an empty database.
func NewSimulation(ctx context.Context) (*Simulation, error) {
	c, err := openDirectLite(ctx)
	if err != nil {
		return nil, err
	}
	s := &Simulation{conn: c, turn: make(chan struct{}, 1)}
	return s, s.Open(SimulatedProcess{}).migrate(ctx, 0)
}

// Begin starts a history. With buckets it is a database that processes share,
// as PostgreSQL; with none it is a file.
func (s *Simulation) Begin(ctx context.Context, buckets int) error {
	s.shared, s.turn, s.links = buckets > 0, make(chan struct{}, 1), nil
	if _, err := s.conn.exec(ctx, `begin immediate`, nil); err != nil {
		return err
	}
	for b := 1; b < buckets; b++ {
		if _, err := s.conn.exec(ctx, `insert into buckets (id) values ($1)`, []any{b}); err != nil {
			return err
		}
	}
	return nil
}

// End forgets everything since Begin.
func (s *Simulation) End(ctx context.Context) error {
	_, err := s.conn.exec(ctx, `rollback`, nil)
	return err
}

// Close frees the memory.
func (s *Simulation) Close() { s.conn.close() }

// Open is a process that opens the database.
func (s *Simulation) Open(p SimulatedProcess) *DB {
	if p.Stale == nil {
		p.Stale = func(Fence) {}
	}
	if p.Step == nil {
		p.Step = func(context.Context, string, *SimulatedAsker) error { return nil }
	}
	if p.Commit == nil {
		p.Commit = func() error { return nil }
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	db := &DB{dialect: simulated{s: s}, sqliteFile: &lite{sim: &simulatedLite{s, p}}}
	db.ids.node = p.Number
	return db
}

// Cut breaks what lasts between a process and the database: its link, as if the
// process had died.
func (db *DB) Cut() {
	s := db.sqliteFile.sim
	s.mu.Lock()
	open := slices.Clone(s.links)
	s.mu.Unlock()
	for _, l := range open {
		if l.db == db {
			l.cut()
		}
	}
}

func (s *simulatedLite) read(ctx context.Context, db *DB, fn Func) error {
	by := new(SimulatedAsker)
	if err := s.process.Step(ctx, "read", by); err != nil {
		return err
	}
	if err := s.look(ctx, db, fn); err != nil {
		return err
	}
	return s.process.Step(ctx, "answered", by)
}

func (s *simulatedLite) look(ctx context.Context, db *DB, fn Func) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	return fn(context.WithoutCancel(ctx), &Tx{Now: s.now(), db: db, conn: s.conn})
}

func (s *simulatedLite) write(ctx context.Context, db *DB, fn Func) error {
	by := new(SimulatedAsker)
	if err := s.process.Step(ctx, "write", by); err != nil {
		return err
	}
	tx := &Tx{Now: s.now(), db: db, conn: s.conn}
	if err := s.transact(context.WithoutCancel(ctx), tx, fn); err != nil {
		return err
	}
	if err := s.process.Step(ctx, "committed", by); err != nil {
		tx.doubted()
		return err
	}
	tx.committed()
	return nil
}

func (s *simulatedLite) now() time.Time { return s.process.Now().UTC().Truncate(time.Millisecond) }

func (s *simulatedLite) transact(ctx context.Context, tx *Tx, fn Func) (err error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if _, err := s.conn.exec(ctx, `savepoint transaction_`, nil); err != nil {
		return err
	}
	done := false
	defer func() { // also if fn panics
		if !done {
			_, _ = s.conn.exec(ctx, `rollback to transaction_`, nil)
		}
		if _, failed := s.conn.exec(ctx, `release transaction_`, nil); failed != nil && err == nil {
			err = failed
		}
	}()
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if f := tx.fenced; f.Epoch > 0 {
		if n, err := countRows(ctx, s.conn, selectFence, []any{f.Bucket, f.Node, f.Epoch}); err != nil {
			return err
		} else if n == 0 {
			s.process.Stale(f)
		}
	}
	if err := s.process.Commit(); err != nil {
		return err
	}
	done = true
	return nil
}

func (s *simulatedLite) notify(ctx context.Context, message string) error {
	if err := s.process.Step(ctx, "notify", new(SimulatedAsker)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		select {
		case l.heard <- message:
		default: // it does not listen
		}
	}
	return nil
}

// simulatedLink is the other end of a Link.
type simulatedLink struct {
	db     *DB
	name   string
	heard  chan string
	broken chan struct{}
}

func (s *simulatedLite) link(db *DB) *Link {
	l := &simulatedLink{db: db, heard: make(chan string, 64), broken: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = append(s.links, l)
	return &Link{db: db, sim: l}
}

func (l *simulatedLink) cut() {
	s := l.db.sqliteFile.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.links, l); at >= 0 {
		s.links = slices.Delete(s.links, at, at+1)
		close(l.broken)
	}
}

func (l *simulatedLink) claim(ctx context.Context, name string) (bool, error) {
	s := l.db.sqliteFile.sim
	if err := s.process.Step(ctx, "read", new(SimulatedAsker)); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.links, func(other *simulatedLink) bool { return other != l && other.name == name }) {
		return false, nil
	}
	l.name = name
	return true, nil
}

func (l *simulatedLink) listen(ctx context.Context, ready func(), fn func(string)) error {
	if err := l.db.sqliteFile.sim.process.Step(ctx, "read", new(SimulatedAsker)); err != nil {
		return err
	}
	ready()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.broken:
			return ErrNoAnswer
		case m := <-l.heard:
			if err := l.db.sqliteFile.sim.process.Step(ctx, "hear", new(SimulatedAsker)); err != nil {
				return err
			}
			fn(m)
		}
	}
}

// simulated is SQLite with the leases of PostgreSQL.
type simulated struct {
	sqliteDB
	s *Simulation
}

func (d simulated) buckets() int {
	if d.s.shared {
		return SimulatedBuckets
	}
	return 1
}

// SimulatedBuckets is how many buckets a simulated cluster shares.
const SimulatedBuckets = 6

func (d simulated) beat(ctx context.Context, db *DB, n Node, now time.Time) (v View, alive bool, err error) {
	if !d.s.shared {
		return d.sqliteDB.beat(ctx, db, n, now)
	}
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		raised, err := tx.Exec(ctx, `update nodes set beat = beat + 1, seen_at = $2 where id = $1 and incarnation = $3`, n.ID, Millis(now), n.Incarnation)
		if err != nil {
			return fmt.Errorf("raise: %w", err)
		}
		alive = raised == 1
		v, err = tx.view(ctx)
		return err
	})
	return v, alive, err
}
