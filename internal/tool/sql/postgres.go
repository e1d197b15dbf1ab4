package sqltool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// commitTime is how long an answer to a commit is waited for, whatever
	// else ends meanwhile.
	commitTime = 10 * time.Second
	// goodbyeTime bounds the last message to the server.
	goodbyeTime = time.Second
	// largestMessage is the size of one row, or of anything else, as the
	// server sends it, in bytes.
	largestMessage = 8 << 20
)

// postgres is a PostgreSQL server. Calls speak its protocol with texts on both
// sides, so that the server converts the values by the types it knows, and no
// type is foreign.
type postgres struct {
	config *pgconn.Config
	server string // host:port/database, for messages
	spares spares
}

// postgresTransaction is an open transaction, alone on its connection.
type postgresTransaction struct {
	conn   *pgconn.PgConn
	spares *spares // where the connection goes afterwards; nil if it is closed
	faults postgresFaults
}

// begin connects and opens a transaction. Reads may get a connection that was
// used before.
func (p *postgres) begin(ctx context.Context, writes bool) (transaction, error) {
	faults := postgresFaults{server: p.server, user: p.config.User, writes: writes}
	if !writes {
		if conn := p.spares.take(); conn != nil {
			if err := openTransaction(ctx, conn, false); err == nil {
				return &postgresTransaction{conn: conn, spares: &p.spares, faults: faults}, nil
			}
			goodbye(ctx, conn)
		}
	}
	conn, err := pgconn.ConnectConfig(ctx, p.config.Copy())
	if err != nil {
		return nil, faults.connecting(err)
	}
	if err := openTransaction(ctx, conn, writes); err != nil {
		goodbye(ctx, conn)
		return nil, faults.running(ctx, err)
	}
	tx := &postgresTransaction{conn: conn, faults: faults}
	if !writes {
		tx.spares = &p.spares
	}
	return tx, nil
}

// openTransaction opens one in which values look the same on every server. If
// its client is lost, the server ends it by itself.
func openTransaction(ctx context.Context, conn *pgconn.PgConn, writes bool) error {
	text := "begin read only"
	if writes {
		text = "begin"
	}
	text += "; set local client_encoding to 'UTF8'; set local timezone to 'UTC'; set local datestyle to 'ISO, YMD'" +
		"; set local intervalstyle to 'iso_8601'; set local bytea_output to 'hex'; set local extra_float_digits to 1"
	if deadline, ok := ctx.Deadline(); ok {
		ms := max(time.Until(deadline).Milliseconds(), 1)
		text += fmt.Sprintf("; set local statement_timeout to %d; set local idle_in_transaction_session_timeout to %d", ms, ms+commitTime.Milliseconds())
	}
	_, err := conn.Exec(ctx, text).ReadAll()
	return err
}

// run executes one statement; the extended protocol allows no more.
func (t *postgresTransaction) run(ctx context.Context, s statement, l limit) (table, error) {
	again := t.spares
	t.spares = nil // unless all goes well
	reader, err := t.send(ctx, s)
	if err != nil {
		return table{}, t.faults.running(ctx, err)
	}
	fields := reader.FieldDescriptions()
	columns := make([]string, len(fields))
	types := make([]uint32, len(fields))
	for i, field := range fields {
		columns[i], types[i] = field.Name, field.DataTypeOID
	}
	found, err := newTable(columns, l)
	for err == nil && reader.NextRow() {
		var roomy bool
		roomy, err = found.add(postgresRow(types, reader.Values()))
		if err == nil && !roomy && !t.faults.writes {
			return found, nil // the rest may be endless; close ends it
		}
	}
	if err != nil {
		return table{}, err
	}
	tag, err := reader.Close()
	if err != nil {
		return table{}, t.faults.running(ctx, err)
	}
	if t.conn.TxStatus() != 'T' {
		return table{}, unanswered(nil) // it ended the transaction, and nobody knows how
	}
	t.spares = again
	found.affected = tag.RowsAffected()
	return found, nil
}

// send sends a statement with its parameters.
func (t *postgresTransaction) send(ctx context.Context, s statement) (*pgconn.ResultReader, error) {
	if !hasList(s.params) {
		return t.conn.ExecParams(ctx, s.sql, postgresParams(s.params, nil), nil, nil, nil), nil
	}
	// A list is written in one way for an array and in another for JSON.
	prepared, err := t.conn.Prepare(ctx, "", s.sql, nil)
	if err != nil {
		return nil, err
	}
	return t.conn.ExecPrepared(ctx, "", postgresParams(s.params, prepared.ParamOIDs), nil, nil), nil
}

// postgresRow converts the values of a row.
func postgresRow(types []uint32, values [][]byte) []json.RawMessage {
	row := make([]json.RawMessage, len(values))
	for i, value := range values {
		row[i] = postgresValue(types[i], value)
	}
	return row
}

// commit tells a commit that was refused, which undid everything, from one
// that was not answered.
func (t *postgresTransaction) commit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	results, err := t.conn.Exec(ctx, "commit").ReadAll()
	if len(results) == 1 {
		switch results[0].CommandTag.String() {
		case "COMMIT":
			return nil
		case "ROLLBACK":
			return t.faults.rolledBack()
		}
	}
	return t.faults.committing(ctx, err)
}

// close undoes what was not committed.
func (t *postgresTransaction) close(ctx context.Context) {
	if t.spares != nil && tidy(ctx, t.conn) {
		t.spares.put(ctx, t.conn)
		return
	}
	goodbye(ctx, t.conn)
}

func (p *postgres) close() { p.spares.close() }

// booksExist looks the table up in the way in which the other statements find
// it, whether or not the role may use it.
func (p *postgres) booksExist() string {
	return `select 1 as found where to_regclass('pawl_calls') is not null`
}

func (p *postgres) describe(ctx context.Context, tx transaction) (string, error) {
	const who = `select current_user::text as role, current_database()::text as base, current_setting('server_version') as version`
	found, err := tx.run(ctx, statement{sql: who}, limit{rows: 1, bytes: largestResult})
	if err != nil {
		return "", err
	}
	var row struct{ Role, Base, Version string }
	if len(found.rows) == 1 {
		_ = json.Unmarshal(found.rows[0], &row) // made a moment ago
	}
	return fmt.Sprintf("PostgreSQL %s answered %s in the database %s", quote(row.Version), quote(row.Role), quote(row.Base)), nil
}
