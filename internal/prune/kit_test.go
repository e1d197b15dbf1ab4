package prune

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

func TestMain(m *testing.M) { migrated.Main(m) }

const day = 24 * time.Hour

// kit is a pruner on a database that rows of any age can be put into.
type kit struct {
	t  testing.TB
	db *store.DB
	s  *Service
	n  int64
}

func both(t *testing.T, test func(t *testing.T, k *kit)) {
	t.Helper()
	pgtest.Both(t, func(t *testing.T, url string) { test(t, newKit(t, url)) })
}

func newKit(t testing.TB, url string) *kit {
	t.Helper()
	return newKitWith(t, url, store.Options{})
}

func newKitWith(t testing.TB, url string, o store.Options) *kit {
	t.Helper()
	db, err := store.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	k := &kit{t: t, db: db}
	k.keeps()
	k.workflow("w", `{"producers":[{"name":"look"}],"consumers":[{"name":"act"}]}`)
	return k
}

// keeps makes another pruner, with these ages.
func (k *kit) keeps(texts ...string) {
	k.t.Helper()
	ages, err := retention.Parse(texts)
	if err != nil {
		k.t.Fatal(err)
	}
	k.s = New(Config{DB: k.db, Keep: ages})
}

func (k *kit) exec(sql string, args ...any) {
	k.t.Helper()
	err := k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	}, store.Lazy)
	if err != nil {
		k.t.Fatalf("%s: %v", sql, err)
	}
}

func (k *kit) texts(sql string) (out []string) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, sql)
		out, err = store.ScanAll(rows, err, "read", store.ScanText)
		return err
	})
	if err != nil {
		k.t.Fatalf("%s: %v", sql, err)
	}
	slices.Sort(out)
	return out
}

func (k *kit) count(from string) (n int) {
	k.t.Helper()
	err := k.db.Read(k.t.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.QueryRow(ctx, `select count(*) from `+from).Scan(&n)
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return n
}

func ago(days float64) int64 {
	return store.Millis(time.Now().Add(-time.Duration(days * float64(day))))
}

// number is the id of a row of so many days ago.
func (k *kit) number(days float64) int64 {
	k.n++
	return store.IDAt(time.UnixMilli(ago(days))) + k.n
}

func (k *kit) workflow(name, config string) {
	k.exec(`insert into workflows (id, name, lane, desired, version, created_at, updated_at, deployed_at) values ($1, $2, $2, 'active', 'v', 0, 0, 0)`, "id-"+name, name)
	k.exec(`insert into workflow_versions (workflow_id, version, number, filename, source, config, created_at) values ($1, 'v', 1, 'a.ts', '', $2, 0)`, "id-"+name, config)
	k.exec(`insert into topics (workflow_id, name, created_at) values ($1, 't', 0)`, "id-"+name)
	k.exec(`insert into lanes (kind, lane, id, name, owner, state, cause, issue, text) values ('workflow', $1, $2, $1, '', 'Idle', '', '', '')`, name, "id-"+name)
}

// row is a run to be made; what is empty is as usual.
type row struct {
	id, kind, lane, handler, status, retryOf, prepared string
	days                                               float64
}

// nothing is what a producer prepares.
const nothing = "nothing"

func (k *kit) run(r row) {
	k.t.Helper()
	or := func(s *string, usual string) {
		if *s == "" {
			*s = usual
		}
	}
	or(&r.kind, "workflow")
	or(&r.lane, "w")
	or(&r.handler, "old") // one that the script does not have any more
	or(&r.status, "committed")
	if r.kind == "workflow" {
		or(&r.prepared, `{"reservations":[{"topic":"t","ids":["something"]}],"data":null}`)
	}
	if r.prepared == nothing {
		r.prepared = ""
	}
	types := map[string]string{"workflow": "consumer", "source": "source", "schedule": "schedule"}
	at := ago(r.days)
	k.exec(`insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, prepare_result, created_at, updated_at, ended_at)
		values ($1, $2, $3, $4, $5, 'event', $6, 'committed', $7, 1, $8, $9, $9, $9)`,
		r.id, r.kind, r.lane, r.handler, types[r.kind], store.NullText(r.retryOf), r.status, store.NullText(r.prepared), at)
	k.exec(`insert into run_logs (run_id, n, phase, at, level, text) values ($1, 0, 'prepare', $2, 'info', 'hello')`, r.id, at)
	k.exec(`insert into run_reads (run_id, n, phase, op, call, answer, at) values ($1, 0, 'prepare', 'tool', '{}', '{}', $2)`, r.id, at)
}

// event is an event of the topic t of the workflow w, made and changed so many
// days ago.
func (k *kit) event(message, status, createdBy, heldBy string, made, changed float64) {
	k.t.Helper()
	k.exec(`insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, created_at, updated_at)
		values ($1, 'id-w', 't', $2, $2, $3, '{"a":1}', $4, $5, $6, '[]', $7, $8)`,
		k.number(made), k.n, message, status, store.NullText(heldBy), createdBy, ago(made), ago(changed))
}

func (k *kit) prune() Result {
	k.t.Helper()
	done, err := k.s.Prune(k.t.Context(), Options{Anew: true})
	if err != nil {
		k.t.Fatal(err)
	}
	return done
}

// publish publishes events and counts those that are new.
func (k *kit) publish(messages ...string) (p eventstore.Published) {
	k.t.Helper()
	var list []eventstore.NewEvent
	for _, m := range messages {
		list = append(list, eventstore.NewEvent{Topic: "t", MessageID: m, Payload: []byte(`{"b":2}`)})
	}
	err := k.db.Write(k.t.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = eventstore.In(tx).Publish(ctx, "id-w", "somebody", list)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

// left fails unless these ids are left of a table.
func (k *kit) left(column, from string, want ...string) {
	k.t.Helper()
	slices.Sort(want)
	if got := k.texts(`select ` + column + ` from ` + from); !slices.Equal(got, want) {
		k.t.Errorf("of %s there are left\n%v, want\n%v", from, got, want)
	}
}

func number(n int) string { return fmt.Sprintf("r%04d", n) }
