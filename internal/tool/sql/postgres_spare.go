package sqltool

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	mostSpares = 4
	spareTime  = 10 * time.Second // that a connection is kept for
)

// spares are connections that a read left behind in good order, for the next
// read: scripts tend to ask several questions in a row. It has no goroutine of
// its own. Changes never use a spare.
type spares struct {
	mu     sync.Mutex
	idle   []*spare // guarded by mu; the newest is last
	closed bool     // guarded by mu
}

type spare struct {
	conn *pgconn.PgConn
	late *time.Timer // closes it
}

// take returns a connection that may have been closed by the server meanwhile,
// or nil.
func (s *spares) take() *pgconn.PgConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == 0 {
		return nil
	}
	last := s.idle[len(s.idle)-1]
	s.idle = s.idle[:len(s.idle)-1]
	last.late.Stop() // if it runs already it will not find it
	return last.conn
}

// put keeps a connection for a while, or closes it.
func (s *spares) put(ctx context.Context, conn *pgconn.PgConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.idle) >= mostSpares {
		goodbye(ctx, conn)
		return
	}
	kept := &spare{conn: conn}
	later := context.WithoutCancel(ctx)
	kept.late = time.AfterFunc(spareTime, func() { s.drop(later, kept) })
	s.idle = append(s.idle, kept)
}

// drop closes a connection unless it was taken.
func (s *spares) drop(ctx context.Context, old *spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, kept := range s.idle {
		if kept == old {
			s.idle = append(s.idle[:i], s.idle[i+1:]...)
			goodbye(ctx, old.conn)
			return
		}
	}
}

// close closes the spares; there will be no more.
func (s *spares) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, kept := range s.idle {
		kept.late.Stop()
		goodbye(context.Background(), kept.conn)
	}
	s.idle = nil
}

// tidy ends a transaction and makes the session as new: settings, locks and
// whatever else a statement may have left are gone. It reports whether it
// succeeded.
func tidy(ctx context.Context, conn *pgconn.PgConn) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
	defer cancel()
	both := conn.StartPipeline(ctx)
	both.SendQueryParams("rollback", nil, nil, nil, nil)
	both.SendPipelineSync()
	both.SendQueryParams("discard all", nil, nil, nil, nil)
	both.SendPipelineSync()
	sent := both.Flush()
	done := both.Close() // reads the answers
	return sent == nil && done == nil && !conn.IsClosed() && conn.TxStatus() == 'I'
}

// goodbye closes a connection; the server undoes what was not committed.
func goodbye(ctx context.Context, conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbyeTime)
	defer cancel()
	_ = conn.Close(ctx) // it is closed in any case
}
