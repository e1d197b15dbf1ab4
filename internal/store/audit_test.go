package store

import (
	"context"
	"errors"
	"testing"
)

// An entry is there if and only if what it tells of is.
func TestAuditIsPartOfItsTransaction(t *testing.T) {
	both(t, func(t *testing.T, db *DB) {
		undo := errors.New("undo")
		err := db.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			if err := tx.Audit(ctx, "ada", "job.cancel", "job:1", nil); err != nil {
				return err
			}
			return undo
		})
		if !errors.Is(err, undo) {
			t.Fatal(err)
		}
		mustWrite(t, db, func(ctx context.Context, tx *Tx) error {
			if err := tx.Audit(ctx, "ada", "job.retry", "job:2", nil); err != nil {
				return err
			}
			return tx.Audit(ctx, "bob", "token.create", "token:3", map[string]string{"name": "ci"})
		})
		log, err := db.AuditLog(t.Context(), 0, 10)
		if err != nil || len(log) != 2 {
			t.Fatalf("%+v %v", log, err)
		}
		if e := log[0]; e.Actor != "bob" || e.Action != "token.create" || e.Subject != "token:3" || string(e.Detail) != `{"name":"ci"}` || e.At.IsZero() {
			t.Errorf("newest %+v", e)
		}
		rest, err := db.AuditLog(t.Context(), log[0].ID, 10)
		if err != nil || len(rest) != 1 || rest[0].Subject != "job:2" || len(rest[0].Detail) != 0 {
			t.Errorf("then %+v %v", rest, err)
		}
	})
}
