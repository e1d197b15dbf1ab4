package e2e

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store"
)

// program runs a command of the built program to its end.
func (s *server) program(args ...string) (output string, code int) {
	s.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return string(out), 0
}

// useDatabase makes the next start one on another database.
func (s *server) useDatabase(url string) {
	s.args[slices.Index(s.args, "--database")+1] = url
}

// stall answers with prices, and counts how often it was asked for poems.
type stall struct {
	*httptest.Server
	asked, poems atomic.Int64
}

func newStall(t *testing.T) *stall {
	m := &stall{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/poet" {
			m.poems.Add(1)
			_, _ = fmt.Fprint(w, `{"ok": true, "output": {"poem": "autumn"}}`)
			return
		}
		n := m.asked.Add(1)
		_, _ = fmt.Fprintf(w, `[{"day": "2026-11-%02d", "close": 1.5, "open": true, "at": "2026-11-15T10:00:00.123Z", "extra": {"b": 1.0, "a": [%d]}}]`, 1+n%28, n)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *stall) source() map[string]any {
	return map[string]any{
		"url": m.URL + "/prices", "table": "prices", "schedule": "interval:1s", "write": map[string]any{"mode": "append", "key": []string{"day"}},
		"response": map[string]any{"format": "json", "fields": []map[string]any{
			{"source": "day", "target": "day", "type": "date"}, {"source": "close", "target": "close", "type": "number"},
			{"source": "open", "target": "open", "type": "boolean"}, {"source": "at", "target": "at", "type": "timestamp"},
			{"source": "extra", "target": "extra", "type": "json"},
		}},
	}
}

func (m *stall) executor() string {
	return "kind: executor\nname: agents\ntype: http\ngraphs: {poet: {url: \"" + m.URL + "/poet\"}}\n"
}

func (s *server) must(method, path string, body, out any) {
	s.t.Helper()
	if status := s.call(method, path, body, out); status >= 300 {
		s.t.Fatalf("%s %s answered %d", method, path, status)
	}
}

// rows are the days of the source's rows.
func (s *server) rows() (days []string) {
	var list struct {
		Items []struct {
			Day   string `json:"day"`
			Extra struct {
				A []int `json:"a"`
			} `json:"extra"`
		} `json:"items"`
	}
	s.must("GET", "/api/v1/sources/prices/rows?limit=100", nil, &list)
	for _, row := range list.Items {
		days = append(days, row.Day)
	}
	slices.Sort(days)
	return days
}

// An installation that was killed at work is moved: what waited goes on, what
// was done stays done, and nothing is done twice.
func TestPromotedInstallationGoesOn(t *testing.T) {
	t.Parallel() // it waits more than it works
	m, u, target := newStall(t), newUpstream(t), pgtest.EmptyURL(t)
	s := serveClerk(t, "sqlite:.pawl/pawl.db")
	s.kill()
	if err := os.WriteFile(filepath.Join(s.dir, "connections", "agents.yaml"), []byte(m.executor()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.must("PUT", "/api/v1/sources/prices", m.source(), nil)
	var schedule struct {
		ID        string `json:"id"`
		NextRunAt string `json:"nextRunAt"`
	}
	s.must("POST", "/api/v1/schedules", map[string]any{"name": "poet", "graphId": "agents:poet", "input": map[string]any{}, "cron": "0 9 1 1 *", "timezone": "UTC"}, &schedule)
	s.must("POST", "/api/v1/schedules/"+schedule.ID+"/run", nil, nil)
	s.eventually("a poem was written", func() bool { return m.poems.Load() == 1 })
	s.eventually("rows were fetched", func() bool { return len(s.rows()) >= 2 })
	at := time.Now().Add(8 * time.Second)
	later := s.enqueue(with(post(u.URL+"/later"), "runAt", at))
	done := s.enqueue(post(u.URL + "/now"))
	s.eventually("a job ran", func() bool { return s.job(done.ID).State == "succeeded" })
	if out, code := s.program("promote", "--to", target); code != pawl.ExitRefused || !strings.Contains(out, "in use by pawl at ") {
		t.Fatalf("while the server runs: %d\n%s", code, out)
	}
	var want []string
	for i := range 30 {
		id := fmt.Sprint("o-", i)
		if !s.order(id) {
			t.Fatal("an order was not taken")
		}
		want = append(want, id)
	}
	before := s.rows()
	s.kill()

	out, code := s.program("promote", "--to", target)
	if code != 0 || !strings.Contains(out, "compared and equal") {
		t.Fatalf("promote: %d\n%s", code, out)
	}
	if out, code := s.program("serve", "--addr", "127.0.0.1:0"); code != pawl.ExitRefused || !strings.Contains(out, "was moved to postgres://") {
		t.Errorf("the old file: %d\n%s", code, out)
	}
	s.useDatabase(target)
	s.start()

	s.eventually("every order is in the book", func() bool { return len(s.lines()) >= len(want) })
	s.eventually("the lane is idle", func() bool { return s.lane().Status == "Idle" })
	got := s.lines()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the book has %v", got)
	}
	s.eventually("the job of the future ran", func() bool { return s.job(later.ID).State == "succeeded" })
	if u.got(later.ID) != 1 || u.at["job-"+later.ID].Before(at) || u.got(done.ID) != 1 {
		t.Errorf("the job of the future was sent %d times, that of the past %d times", u.got(later.ID), u.got(done.ID))
	}
	s.eventually("the source goes on", func() bool { return len(s.rows()) > len(before) })
	for _, day := range before {
		if !slices.Contains(s.rows(), day) {
			t.Errorf("the row of %s is gone", day)
		}
	}
	var now struct {
		NextRunAt string `json:"nextRunAt"`
	}
	s.must("GET", "/api/v1/schedules/"+schedule.ID, nil, &now)
	if now.NextRunAt != schedule.NextRunAt || m.poems.Load() != 1 {
		t.Errorf("the schedule was at %s and is at %s, with %d poems", schedule.NextRunAt, now.NextRunAt, m.poems.Load())
	}
	s.must("POST", "/api/v1/schedules/"+schedule.ID+"/run", nil, nil)
	s.eventually("another poem was written", func() bool { return m.poems.Load() == 2 })
}

// gates stop a promotion in PostgreSQL, before the row that says that all was
// copied and before the one that says that PostgreSQL counts.
type gates struct {
	t    *testing.T
	ctx  context.Context
	conn *pgx.Conn
}

const (
	gateCopied = 7001
	gateDone   = 7002
)

func closeGates(t *testing.T, url string) *gates {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{Promoting: true}) // makes the tables
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	g := &gates{t: t, ctx: context.WithoutCancel(t.Context())}
	if g.conn, err = pgx.Connect(g.ctx, url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.conn.Close(g.ctx) })
	g.exec(fmt.Sprintf(`create function gate() returns trigger language plpgsql as $$ begin
		if tg_op = 'INSERT' then perform pg_advisory_xact_lock(%d); else perform pg_advisory_xact_lock(%d); end if; return new; end $$`, gateCopied, gateDone))
	g.exec(`create trigger gate before insert or update on promotions for each row execute function gate()`)
	g.exec(fmt.Sprintf(`select pg_advisory_lock(%d), pg_advisory_lock(%d)`, gateCopied, gateDone))
	return g
}

func (g *gates) exec(sql string) {
	g.t.Helper()
	if _, err := g.conn.Exec(g.ctx, sql); err != nil {
		g.t.Fatalf("%s: %v", sql, err)
	}
}

func (g *gates) open(gate int) { g.exec(fmt.Sprintf(`select pg_advisory_unlock(%d)`, gate)) }

func (g *gates) count(sql string) (n int) {
	g.t.Helper()
	if err := g.conn.QueryRow(g.ctx, sql).Scan(&n); err != nil {
		g.t.Fatal(err)
	}
	return n
}

// waiting reports whether somebody stands before a gate.
func (g *gates) waiting(gate int) bool {
	return g.count(fmt.Sprintf(`select count(*) from pg_locks l join pg_database d on d.oid = l.database
		where d.datname = current_database() and l.locktype = 'advisory' and l.objid = %d and not l.granted`, gate)) > 0
}

// remove lets everybody through, after throwing out those whose client is dead.
func (g *gates) remove() {
	g.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	g.exec(`drop trigger gate on promotions`)
}

// opens tells why a database is refused; empty if it is not.
func opens(t *testing.T, url string) string {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err == nil {
		_ = db.Close()
		return ""
	}
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		t.Fatalf("open: %v", err)
	}
	return e.Reason
}

// kill -9 of the real program on both sides of each step that counts: the file
// and PostgreSQL are never both usable, and the next try finishes.
func TestKilledPromotionLeavesOneDatabaseThatCounts(t *testing.T) {
	for _, c := range []struct{ killed, file, server string }{
		{"before the copy is committed", "", ""},
		{"after the copy, before the file is marked", "", "promoting"},
		{"after the file is marked", "promoted", "promoting"},
	} {
		t.Run(c.killed, func(t *testing.T) {
			target := pgtest.EmptyURL(t)
			s := serve(t, "sqlite:.pawl/pawl.db")
			j := s.enqueue(with(map[string]any{"task": "log", "payload": map[string]any{"message": "later"}}, "delay", "1h"))
			s.kill()
			g := closeGates(t, target)
			file := filepath.Join(s.dir, ".pawl", "pawl.db")
			promote := exec.Command(binary, "promote", "--to", target)
			promote.Dir = s.dir
			if err := promote.Start(); err != nil {
				t.Fatal(err)
			}
			s.eventually("all was copied", func() bool { return g.waiting(gateCopied) })
			switch c.server + c.file {
			case "promoting": // the mark has to wait for another writer
				raw, err := sql.Open("sqlite", "file:"+file)
				if err != nil {
					t.Fatal(err)
				}
				defer raw.Close() //nolint:errcheck // nothing was written
				writer, err := raw.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer writer.Close() //nolint:errcheck // nothing was written
				if _, err := writer.ExecContext(t.Context(), `begin immediate`); err != nil {
					t.Fatal(err)
				}
				defer writer.ExecContext(context.WithoutCancel(t.Context()), `rollback`) //nolint:errcheck // nothing was written
				g.open(gateCopied)
				s.eventually("the copy is committed", func() bool { return g.count(`select count(*) from promotions`) == 1 })
				kill(promote)
				if _, err := writer.ExecContext(t.Context(), `rollback`); err != nil {
					t.Fatal(err)
				}
			case "promotingpromoted":
				g.open(gateCopied)
				s.eventually("the file is marked", func() bool { return g.waiting(gateDone) })
				kill(promote)
			default:
				kill(promote)
			}
			g.remove()

			if why := opens(t, "sqlite:"+file); why != c.file {
				t.Errorf("the file is refused with %q, want %q", why, c.file)
			}
			if why := opens(t, target); why != c.server {
				t.Errorf("PostgreSQL is refused with %q, want %q", why, c.server)
			}
			if out, code := s.program("promote", "--to", target); code != 0 {
				t.Fatalf("the next try: %d\n%s", code, out)
			}
			if why := opens(t, "sqlite:"+file); why != "promoted" {
				t.Errorf("the file is refused with %q at the end", why)
			}
			s.useDatabase(target)
			s.start()
			if got := s.job(j.ID); got.State != "scheduled" {
				t.Errorf("the job is %s", got.State)
			}
		})
	}
}

func kill(c *exec.Cmd) {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// A backup that is made while orders come in has every order that was taken
// before; a server that starts on it goes on with all of them.
func TestBackupUnderLoadIsRestored(t *testing.T) {
	s := serveClerk(t, "sqlite:.pawl/pawl.db")
	var taken []string
	for i := range 40 {
		id := fmt.Sprint("o-", i)
		if !s.order(id) {
			t.Fatal("an order was not taken")
		}
		taken = append(taken, id)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				s.order(fmt.Sprint("during-", i))
			}
		}
	}()
	out, code := s.program("backup", "copy.db")
	close(stop)
	<-ended
	if code != 0 || !strings.Contains(out, "rows of") || !strings.Contains(out, "checked") {
		t.Fatalf("backup: %d\n%s", code, out)
	}
	if out, code := s.program("backup", "copy.db"); code != pawl.ExitRefused || !strings.Contains(out, "--force") {
		t.Errorf("a second backup to the same file: %d\n%s", code, out)
	}
	if info, err := os.Stat(filepath.Join(s.dir, "copy.db")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info, err)
	}
	s.kill()
	if out, code := s.program("backup", "--force", "copy2.db"); code != 0 {
		t.Errorf("backup without a server: %d\n%s", code, out)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "*.part*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}

	restored := filepath.Join(s.dir, "restored")
	if err := errors.Join(os.Mkdir(restored, 0o700), os.Rename(filepath.Join(s.dir, "copy.db"), filepath.Join(restored, "pawl.db"))); err != nil {
		t.Fatal(err)
	}
	s.useDatabase("sqlite:restored/pawl.db")
	s.start()
	s.eventually("every order is in the book", func() bool {
		lines := s.lines()
		return !slices.ContainsFunc(taken, func(id string) bool { return !slices.Contains(lines, id) })
	})
	s.eventually("the lane is idle", func() bool { return s.lane().Status == "Idle" })
}
