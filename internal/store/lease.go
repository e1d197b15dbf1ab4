package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Node is one process of Pawl on this database.
type Node struct {
	ID          string
	Incarnation string // of the process that has the id now

	Name      string // for people
	Addr      string
	Roles     string
	Version   string
	StartedAt time.Time
	SeenAt    time.Time
	Beat      int64
	Share     bool // takes buckets

	// The schemas that its program serves; see Schema. Zero: it does not tell.
	// Join tells those of this program.
	SchemaMin, SchemaMax int
}

// Bucket is a share of the lanes, with its owner.
type Bucket struct {
	ID    int
	Node  string // empty is free
	Epoch int64
}

// View is who is there, who owns what, and whether anything may start.
type View struct {
	Nodes   []Node
	Buckets []Bucket
	Halt    HaltMark
}

// Join adds a node, or takes over the row of an earlier process of the same
// identity.
func (db *DB) Join(ctx context.Context, n Node) error {
	n.SchemaMin, n.SchemaMax = Schema()
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `insert into nodes as n (id, incarnation, name, addr, roles, version, started_at, seen_at, beat, share, schema_min, schema_max)
			values ($1, $8, $2, $3, $4, $5, $6, $6, 0, $7, $9, $10)
			on conflict (id) do update set incarnation = excluded.incarnation, name = excluded.name, addr = excluded.addr, roles = excluded.roles,
				version = excluded.version, started_at = excluded.started_at, seen_at = excluded.seen_at, beat = n.beat + 1, share = excluded.share,
				schema_min = excluded.schema_min, schema_max = excluded.schema_max`,
			n.ID, n.Name, n.Addr, n.Roles, n.Version, Millis(tx.Now), boolInt(n.Share), n.Incarnation, n.SchemaMin, n.SchemaMax)
		return err
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Beat raises the node's heartbeat and returns the view of the cluster. It
// fails with pawl.ErrLeaseLost when the node's row is gone: others took it for
// dead. It fails with pawl.ErrConflict when another process has joined under the
// node's id since.
func (db *DB) Beat(ctx context.Context, n Node) (View, error) {
	v, alive, err := db.dialect.beat(ctx, db, n, now())
	if err != nil {
		return View{}, db.wrap(fmt.Errorf("heartbeat: %w", err))
	}
	if alive {
		return v, nil
	}
	// The view can be from before the row was removed, so it does not tell.
	taken := false
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		return tx.QueryRow(ctx, `select exists (select 1 from nodes where id = $1 and incarnation <> $2)`, n.ID, n.Incarnation).Scan(&taken)
	})
	switch {
	case err != nil:
		return View{}, fmt.Errorf("heartbeat: %w", err)
	case taken:
		return v, &pawl.Error{Code: pawl.CodeConflict, Op: "heartbeat", Msg: "another process works under the id of this node"}
	}
	return v, &pawl.Error{Code: pawl.CodeLeaseLost, Op: "heartbeat", Msg: "this node was taken for dead"}
}

// Leave frees the node's buckets and removes it, unless another process has its
// id by now.
func (db *DB) Leave(ctx context.Context, n Node) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		gone, err := tx.Exec(ctx, `delete from nodes where id = $1 and incarnation = $2`, n.ID, n.Incarnation)
		if err != nil || gone == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `update buckets set node = null, epoch = epoch + 1 where node = $1`, n.ID)
		return err
	})
}

// Bury removes a node that did not raise its heartbeat since it was seen at
// the given one, and reports whether it is removed: one that did lives. Its buckets stay its own until they are taken; what it executed
// for the execution service ends with it, so that nobody waits for its leases.
func (db *DB) Bury(ctx context.Context, id string, beat int64) (buried bool, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		n, err := tx.Exec(ctx, `delete from nodes where id = $1 and beat = $2`, id, beat)
		buried = n == 1
		if err != nil || !buried {
			return err
		}
		_, err = tx.ReleaseExecutionsOf(ctx, id+"/")
		return err
	})
	return buried, err
}

// ReleaseExecutionsOf gives up every claim whose owner has a name that begins so:
// those of an earlier process of a node. It returns how many there were.
func (tx *Tx) ReleaseExecutionsOf(ctx context.Context, prefix string) (int64, error) {
	n, err := tx.Exec(ctx, `update execution_requests set owner = null, lease_until = $2, updated_at = $2
		where ok is null and lease_until is not null and substr(owner, 1, $3) = $1`, prefix, Millis(tx.Now), len(prefix))
	if err != nil {
		return 0, fmt.Errorf("release executions: %w", err)
	}
	return n, nil
}

// Take makes the node the owner of buckets that were seen as given, and returns
// those it got. What somebody else took meanwhile is left out, and so is what
// the old owner has a transaction under way for: one that hangs must not keep
// the others.
func (db *DB) Take(ctx context.Context, node string, seen ...Bucket) (got []Bucket, err error) {
	ids := make([]int, len(seen))
	for i, b := range seen {
		ids[i] = b.ID
	}
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		got = got[:0]
		locked, err := db.dialect.tryLockBuckets(ctx, tx, ids)
		if err != nil {
			return err
		}
		for _, b := range seen {
			if !slices.Contains(locked, b.ID) {
				continue
			}
			n, err := tx.Exec(ctx, `update buckets set node = $1, epoch = epoch + 1 where id = $2 and epoch = $3`, node, b.ID, b.Epoch)
			if err != nil {
				return err
			}
			if n == 1 {
				got = append(got, Bucket{b.ID, node, b.Epoch + 1})
			}
		}
		return nil
	})
	return got, err
}

// Release frees buckets, and returns those that are no longer held by these
// fences. Those that have a transaction under way are kept.
func (db *DB) Release(ctx context.Context, fences ...Fence) (gone []int, err error) {
	ids := make([]int, len(fences))
	for i, f := range fences {
		ids[i] = f.Bucket
	}
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		gone, err = db.dialect.tryLockBuckets(ctx, tx, ids)
		if err != nil {
			return err
		}
		for _, f := range fences {
			if !slices.Contains(gone, f.Bucket) {
				continue
			}
			if _, err := tx.Exec(ctx, `update buckets set node = null, epoch = epoch + 1 where id = $1 and node = $2 and epoch = $3`, f.Bucket, f.Node, f.Epoch); err != nil {
				return err
			}
		}
		return nil
	})
	return gone, err
}

// Cluster reads the view without a heartbeat.
func (db *DB) Cluster(ctx context.Context) (v View, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		v, err = tx.view(ctx)
		return err
	})
	return v, err
}

func (tx *Tx) view(ctx context.Context) (View, error) {
	var v View
	rows, err := tx.Query(ctx, `select id, name, addr, roles, version, started_at, seen_at, beat, share, coalesce(schema_min, 0), coalesce(schema_max, 0) from nodes order by id`)
	if err != nil {
		return v, err
	}
	defer rows.Close()
	for rows.Next() {
		var n Node
		var started, seen int64
		var share int
		if err := rows.Scan(&n.ID, &n.Name, &n.Addr, &n.Roles, &n.Version, &started, &seen, &n.Beat, &share, &n.SchemaMin, &n.SchemaMax); err != nil {
			return v, err
		}
		n.StartedAt, n.SeenAt, n.Share = FromMillis(started), FromMillis(seen), share == 1
		v.Nodes = append(v.Nodes, n)
	}
	if err := rows.Err(); err != nil {
		return v, err
	}
	rows.Close()
	rows, err = tx.Query(ctx, `select id, node, epoch from buckets order by id`)
	if err != nil {
		return v, err
	}
	defer rows.Close()
	for rows.Next() {
		var b Bucket
		var node *string
		if err := rows.Scan(&b.ID, &node, &b.Epoch); err != nil {
			return v, err
		}
		b.Node = FromNullText(node)
		v.Buckets = append(v.Buckets, b)
	}
	if err := rows.Err(); err != nil {
		return v, err
	}
	rows.Close()
	h, err := tx.LatestHalt(ctx)
	v.Halt = h.HaltMark
	return v, err
}

// WorkerSeen is when a node that works on jobs was seen last; zero if none is
// known.
func (tx *Tx) WorkerSeen(ctx context.Context) (time.Time, error) {
	var at *int64
	if err := tx.QueryRow(ctx, `select max(seen_at) from nodes where share = 1`).Scan(&at); err != nil {
		return time.Time{}, fmt.Errorf("look for workers: %w", err)
	}
	return FromNullMillis(at), nil
}
