package store

import (
	"context"
	"time"
)

// What nodes tell each other is read from a table and not from a NOTIFY: whoever
// may connect to a PostgreSQL database can listen to its channels, and send on
// them, too.

// Say keeps what other nodes are going to hear, and forgets what is older than
// they are given to hear it.
func (db *DB) Say(ctx context.Context, id, content string, forget time.Duration) error {
	return db.Write(ctx, func(ctx context.Context, tx *Tx) error {
		if forget > 0 {
			if _, err := tx.Exec(ctx, `delete from relay_batches where said_at < $1`, Millis(tx.Now.Add(-forget))); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `insert into relay_batches (id, said_at, content) values ($1, $2, $3)`, id, Millis(tx.Now), content)
		return err
	})
}

// Hear reads what was said under these ids, in the order of the ids. What is
// forgotten is not there.
func (db *DB) Hear(ctx context.Context, ids []string) (contents []string, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		contents = contents[:0]
		for _, id := range ids {
			found, err := tx.Query(ctx, `select content from relay_batches where id = $1`, id)
			texts, err := ScanAll(found, err, "hear what nodes said", ScanText)
			if err != nil {
				return err
			}
			contents = append(contents, texts...)
		}
		return nil
	})
	return contents, err
}
