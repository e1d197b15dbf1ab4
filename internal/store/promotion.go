package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// The sides and the states of a promotion. A file that was left and a database
// that is not done are both refused by Open, so that at no instant both can be
// used:
//
//	file      PostgreSQL
//	(none)    (none)     before
//	(none)    copied     the copy is there; the file still counts
//	done      copied     the file is refused from here on
//	done      done       PostgreSQL counts
const (
	sideFrom = "from"
	sideTo   = "to"

	promotionCopied = "copied"
	promotionDone   = "done"
)

// promotion is one row of the table promotions.
type promotion struct {
	id, side, state, other string
	at                     time.Time
}

// promotion reads the move that this database took part in; its id is empty if
// there was none.
func (tx *Tx) promotion(ctx context.Context) (p promotion, err error) {
	var at int64
	err = tx.QueryRow(ctx, `select id, side, state, other, created_at from promotions order by created_at desc limit 1`).Scan(&p.id, &p.side, &p.state, &p.other, &at)
	if errors.Is(err, ErrNoRow) {
		return promotion{}, nil
	}
	p.at = FromMillis(at)
	return p, err
}

// refuseMoved fails if another database counts instead of this one.
func (db *DB) refuseMoved(ctx context.Context) error {
	var p promotion
	err := db.Read(ctx, func(ctx context.Context, tx *Tx) (err error) {
		p, err = tx.promotion(ctx)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("look for a promotion: %w", err)
	case p.side == sideFrom:
		return movedAway(p)
	case p.side == sideTo && p.state != promotionDone:
		return &pawl.Error{
			Code: pawl.CodeConflict, Reason: "promoting", Op: "open database", Msg: fmt.Sprintf("the move from %s to this database was not finished", p.other),
			Hint: "Run pawl promote again: it finishes what it began. Until then the file counts.",
		}
	}
	return nil
}

func movedAway(p promotion) error {
	return &pawl.Error{
		Code: pawl.CodeConflict, Reason: "promoted", Op: "open database", Msg: fmt.Sprintf("everything in this file was moved to %s at %s", p.other, pawl.FormatTime(p.at)),
		Hint: "Use that database: --database URL. pawl promote --undo makes the file usable again, without what happened since.",
	}
}

// mark notes in the file that it was left.
func (db *DB) mark(ctx context.Context, p promotion) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error { return tx.addPromotion(ctx, p) })
}

func (tx *Tx) addPromotion(ctx context.Context, p promotion) error {
	var finished time.Time
	if p.state == promotionDone {
		finished = p.at
	}
	_, err := tx.Exec(ctx, `insert into promotions (id, side, state, other, created_at, finished_at) values ($1, $2, $3, $4, $5, $6)`,
		p.id, p.side, p.state, p.other, Millis(p.at), NullMillis(finished))
	if err != nil {
		return fmt.Errorf("note the promotion: %w", err)
	}
	return nil
}

// finishPromotion lets the database that took over be opened.
func (db *DB) finishPromotion(ctx context.Context, id string) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		_, err := tx.Exec(ctx, `update promotions set state = $2, finished_at = $3 where id = $1`, id, promotionDone, Millis(tx.Now))
		return err
	})
}

// UndoPromotion makes a file usable again that was left, and reports whether it
// was. The database that took over is not touched.
func (db *DB) UndoPromotion(ctx context.Context) (undone bool, err error) {
	err = db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		n, err := tx.Exec(ctx, `delete from promotions where side = $1`, sideFrom)
		if err != nil || n == 0 {
			return err
		}
		undone = true
		return tx.Audit(ctx, "pawl promote", "database.unpromote", "database", nil)
	})
	return undone, err
}
