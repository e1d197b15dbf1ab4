package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// role makes a server of one role in a fresh folder, without starting it.
func role(t *testing.T, name, database string, args ...string) *server {
	t.Helper()
	addr := freeAddr(t)
	s := &server{t: t, dir: t.TempDir(), url: "http://" + addr, log: &logBuffer{}}
	s.args = append([]string{"serve", "--addr", addr, "--database", database, "--roles", name}, args...)
	t.Cleanup(func() {
		if s.cmd != nil {
			s.kill()
		}
		if t.Failed() {
			t.Logf("log of the %s at %s:\n%s", name, s.url, s.log)
		}
	})
	return s
}

// servicePath is where a process keeps what it shows to the execution service,
// or asks of a worker.
func (s *server) servicePath() string { return filepath.Join(s.dir, ".pawl", "service.token") }

// setServiceToken gives a process that does not run its service token.
func (s *server) setServiceToken(text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.servicePath()), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.servicePath(), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) serviceToken() string {
	s.t.Helper()
	b, err := os.ReadFile(s.servicePath())
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// split starts a process that serves and executes graphs, and makes one that
// works and knows no executor, only where the other one is.
func split(t *testing.T, database string, p *poet) (api, worker *server) {
	t.Helper()
	dir := t.TempDir()
	text := "kind: executor\nname: http\ntype: http\ngraphs: {poet: {url: \"" + p.URL + "/poet\", timeout: 1m}}\n"
	if err := os.WriteFile(filepath.Join(dir, "executors.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	api = role(t, "api", database, "--allow-private", "127.0.0.1/32", "--connection-dir", dir)
	api.start()
	return api, role(t, "worker", database, "--execution-url", api.url)
}

// poem makes a schedule that does not come due in a test and asks for a run.
func (s *server) poem() (id string) {
	s.t.Helper()
	id = s.newSchedule(map[string]any{"name": "poet", "graphId": "http:poet", "input": map[string]any{"topic": "autumn"}, "cron": "0 9 1 1 *", "timezone": "Europe/Berlin"})
	if status := s.call("POST", "/api/v1/schedules/"+id+"/run", nil, nil); status != http.StatusAccepted {
		s.t.Fatalf("run now answered %d", status)
	}
	return id
}

// asked is the slot of the run that was asked for.
func (s *server) asked(id string) slot {
	s.t.Helper()
	for _, got := range s.slots(id) {
		if got.Trigger == "manual" {
			return got
		}
	}
	s.t.Fatal("the slot is gone")
	return slot{}
}

// wantPoem waits until the slot has its outcome, and fails unless it has one
// receipt.
func (s *server) wantPoem(id string) {
	s.t.Helper()
	s.eventually("the slot is closed", func() bool { return s.asked(id).Status == "success" })
	if done := s.asked(id); done.Disposition == nil || *done.Disposition != "fired" || done.RunID == nil || done.CostUSD != 0.01 {
		s.t.Errorf("the slot is %+v", done)
	}
	var receipts struct {
		Items []struct {
			SourceReference string `json:"sourceReference"`
		} `json:"items"`
	}
	s.call("GET", "/api/v1/billing/receipts", nil, &receipts)
	if len(receipts.Items) != 1 || !strings.HasSuffix(receipts.Items[0].SourceReference, "/u1") {
		s.t.Errorf("the receipts are %+v", receipts.Items)
	}
}

// calls is how often the poet was asked for its one slot, and fails if it was
// asked for more than one.
func (p *poet) calls(t *testing.T) (n int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.keys) > 1 {
		t.Errorf("one slot was asked for under %d keys: %v", len(p.keys), p.keys)
	}
	for _, calls := range p.keys {
		n += calls
	}
	return n
}

// letGo lets the poet answer, now and from now on.
func (p *poet) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.hold)
	p.hold = nil
}

// C-06, C-18, C-42, X-52, X-65: a worker that has no executor of its own runs a
// schedule through the process that has, and however either of them dies while
// the graph runs, it is executed under one key, and recorded and charged once.
func TestSplitRolesExecuteASlotOnce(t *testing.T) {
	for name, c := range map[string]struct {
		during func(api, worker *server, p *poet)
		most   int // calls with the one key
	}{
		"nobody dies": {func(_, _ *server, p *poet) { p.letGo() }, 1},
		// The executor's answer is lost with the process that asked for it, so the
		// executor is asked for the same run again, by its key.
		"the api dies": {func(api, _ *server, p *poet) {
			api.kill()
			p.letGo()
			api.start()
		}, 2},
		// The run goes on without the worker, and the next one is told its outcome.
		"the worker dies": {func(_, worker *server, p *poet) {
			worker.kill()
			worker.start()
			p.letGo()
		}, 1},
		"the worker dies and the graph ends meanwhile": {func(_, worker *server, p *poet) {
			worker.kill()
			p.letGo()
			worker.start()
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPoet(t)
			p.hold = make(chan struct{})
			api, worker := split(t, pgtest.URL(t), p)
			worker.setServiceToken(api.serviceToken())
			worker.start()
			id := api.poem()
			api.eventually("the graph runs", func() bool { return p.slots() == 1 })
			if got := api.asked(id).Status; got != "running" {
				t.Errorf("while the graph runs its slot is %s", got)
			}
			c.during(api, worker, p)
			api.wantPoem(id)
			if calls := p.calls(t); calls < 1 || calls > c.most {
				t.Errorf("the executor was called %d times with the key, want at most %d", calls, c.most)
			}
		})
	}
}

// A worker whose service token is wrong says so. Its slot is neither executed
// nor passed over: it waits, and runs once the token is right. Nor does it keep
// the worker from stopping.
func TestAWrongServiceTokenKeepsASlotWaiting(t *testing.T) {
	p := newPoet(t)
	api, worker := split(t, pgtest.URL(t), p)
	worker.setServiceToken("of-another-cluster")
	worker.start()
	id := api.poem()
	worker.eventually("the worker says what is wrong, and asks again", func() bool {
		return strings.Count(worker.log.String(), "the service token is missing or wrong") >= 2
	})
	if got := api.asked(id); got.Disposition != nil || (got.Status != "pending" && got.Status != "running") {
		t.Errorf("the slot did not wait: %+v", got)
	}
	if calls := p.calls(t); calls != 0 {
		t.Errorf("the executor was called %d times", calls)
	}
	asked := time.Now()
	if code := worker.stop(); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
	if took := time.Since(asked); took > 20*time.Second { // less than it would wait for what runs
		t.Errorf("the worker needed %s to stop", took)
	}
	worker.setServiceToken(api.serviceToken())
	worker.start()
	api.wantPoem(id)
	if calls := p.calls(t); calls != 1 {
		t.Errorf("the executor was called %d times, want once", calls)
	}
}

// A SQLite file has one process, so its roles cannot be split: the second one
// ends and says why.
func TestRolesCannotBeSplitOnSQLite(t *testing.T) {
	p := newPoet(t)
	api, worker := split(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), p)
	worker.setServiceToken(api.serviceToken())
	worker.launch()
	select {
	case <-worker.done:
	case <-time.After(60 * time.Second):
		t.Fatal("a second process works on the file")
	}
	said := worker.log.String()
	if code := worker.cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(said, "the database file is in use by") || !strings.Contains(said, "PostgreSQL") {
		t.Errorf("it ended with %d and said %q", code, said)
	}
	if status := api.status("/readyz"); status != http.StatusOK {
		t.Errorf("the first process answers %d", status)
	}
}
