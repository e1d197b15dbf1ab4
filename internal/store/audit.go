package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AuditEntry is something that a person did.
type AuditEntry struct {
	ID      int64
	At      time.Time
	Actor   string // who: the user's name and the token's id
	Action  string // what: noun.verb, such as job.cancel
	Subject string // to what: kind:id, such as job:42
	Detail  json.RawMessage
}

// Audit notes what a person does, in the transaction that does it: either both
// are there afterwards or neither is. The entry's id and time are its own;
// detail is anything that can be JSON, or nil.
func (tx *Tx) Audit(ctx context.Context, actor, action, subject string, detail any) error {
	line := AuditEntry{Actor: actor, Action: action, Subject: subject}
	if detail != nil {
		raw, err := json.Marshal(detail)
		if err != nil {
			return fmt.Errorf("write audit detail: %w", err)
		}
		line.Detail = raw
	}
	return tx.AuditAll(ctx, []AuditEntry{line})
}

// AuditAll is Audit for many lines at once; their ids and times are set here.
func (tx *Tx) AuditAll(ctx context.Context, lines []AuditEntry) error {
	return tx.db.insertAudit(ctx, tx.conn, lines, tx.Now)
}

func (db *DB) insertAudit(ctx context.Context, c conn, lines []AuditEntry, at time.Time) error {
	const most = 100 // lines of a statement
	for chunk := range slices.Chunk(lines, most) {
		var args []any
		var values []string
		for _, l := range chunk {
			n := len(args)
			values = append(values, fmt.Sprintf("($%d, $%d, $%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4, n+5, n+6))
			args = append(args, db.ids.next(at), Millis(at), l.Actor, l.Action, l.Subject, NullText(string(l.Detail)))
		}
		if _, err := c.exec(ctx, `insert into audit_log (id, at, actor, action, subject, detail) values `+strings.Join(values, ", "), args); err != nil {
			return fmt.Errorf("write audit entry: %w", err)
		}
	}
	return nil
}

// AuditLog reads up to limit entries, the newest first; before is the id of
// the last one that was read already, or zero.
func (db *DB) AuditLog(ctx context.Context, before int64, limit int) (out []AuditEntry, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx *Tx) error {
		out, err = scanAudit(tx.Query(ctx, `select id, at, actor, action, subject, detail from audit_log
			where id < $1 order by id desc limit $2`, IDBefore(before), limit))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	return out, nil
}

// auditLooks is how many entries are looked through for what people last did to a
// thing.
const auditLooks = 1000

// LastAudited reads what was the last of some actions on a subject until an
// instant, or fails with ErrNoRow if it is not among the entries before that.
func (tx *Tx) LastAudited(ctx context.Context, subject string, until time.Time, actions ...string) (AuditEntry, error) {
	rows, err := tx.Query(ctx, `select id, at, actor, action, subject, detail from (select * from audit_log where at <= $1 order by at desc, id desc limit $2) t
		where t.subject = $3 order by t.at desc, t.id desc`, Millis(until), auditLooks, subject)
	list, err := scanAudit(rows, err)
	if err != nil {
		return AuditEntry{}, fmt.Errorf("read audit log: %w", err)
	}
	for _, e := range list {
		if slices.Contains(actions, e.Action) {
			return e, nil
		}
	}
	return AuditEntry{}, ErrNoRow
}

func scanAudit(rows Rows, err error) ([]AuditEntry, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []AuditEntry
	for rows.Next() {
		var e AuditEntry
		var at int64
		var detail *string
		if err := rows.Scan(&e.ID, &at, &e.Actor, &e.Action, &e.Subject, &detail); err != nil {
			return nil, err
		}
		e.At, e.Detail = FromMillis(at), json.RawMessage(FromNullText(detail))
		out = append(out, e)
	}
	return out, rows.Err()
}
