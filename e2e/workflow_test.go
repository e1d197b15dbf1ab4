package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// clerk is a workflow whose consumer enters every event into a book, once.
const clerk = `import { workflow } from "pawl";
export default workflow({
  name: "clerk",
  topics: { order: {}, entered: {} },
  consumers: {
    enter: {
      subscribe: ["order"],
      publishes: ["entered"],
      async prepare(ctx, state: { count: number } | undefined) {
        const [order] = await ctx.peek("order");
        if (!order) return { reservations: [], data: {} };
        return { reservations: [{ topic: "order", ids: [order.messageId] }], data: { id: order.messageId, count: (state?.count ?? 0) + 1 } };
      },
      async mutate(ctx, prepared) {
        await ctx.tools.book.append({ path: "book.txt", line: prepared.data.id });
      },
      next(ctx, prepared, result) {
        if (result.status !== "applied") return;
        ctx.publish("entered", { messageId: "entered-" + prepared.data.id, payload: prepared.data });
        return { count: prepared.data.count };
      },
    },
    count: {
      subscribe: ["entered"],
      async prepare(ctx, state) {
        const list = await ctx.peek("entered", { limit: 1000 });
        return { reservations: [{ topic: "entered", ids: list.map((e) => e.messageId) }], data: list.length };
      },
      next(ctx, prepared, result) { ctx.log(prepared.data, "entered"); },
    },
  },
});
`

const book = `kind: connection
name: book
type: file
root: ./book
policy: {append: allow}
`

// serveClerk is a server with the clerk deployed.
func serveClerk(t *testing.T, database string) *server {
	t.Helper()
	s := serve(t, database)
	s.kill()
	if err := os.MkdirAll(filepath.Join(s.dir, "connections"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "connections", "book.yaml"), []byte(book), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = append(s.args, "--connection-dir", "connections")
	s.start()
	s.deploy(clerk)
	return s
}

func (s *server) deploy(script string) {
	s.t.Helper()
	var out struct {
		What   string `json:"what"`
		Detail string `json:"detail"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if status := s.call("PUT", "/api/v1/workflows/clerk", map[string]any{"script": script, "filename": "clerk.workflow.ts"}, &out); status >= 300 {
		s.t.Fatalf("deploy answered %d: %+v", status, out)
	}
}

// order publishes an event and reports whether it was acknowledged.
func (s *server) order(id string) bool {
	status, err := s.tryCall("POST", "/api/v1/workflows/clerk/events", map[string]any{"topic": "order", "messageId": id, "payload": id}, nil)
	return err == nil && status < 300
}

// lines are those of the book.
func (s *server) lines() []string {
	text, err := os.ReadFile(filepath.Join(s.dir, "connections", "book", "book.txt"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

type lane struct {
	Status string `json:"status"`
	Issue  string `json:"issue"`
}

func (s *server) lane() (l lane) {
	s.t.Helper()
	s.call("GET", "/api/v1/workflows/clerk", nil, &l)
	return l
}

// A-123..A-126, X-06: kill -9 of the real program at random instants, while
// runs are in every phase: every acknowledged order is entered exactly once,
// and what next published arrived.
func TestKilledWorkflowsLoseAndRepeatNothing(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		s := serveClerk(t, database)
		var want []string
		for round := range 8 {
			entered := len(s.lines())
			for i := range 25 {
				id := fmt.Sprintf("o-%d-%d", round, i)
				if !s.order(id) {
					t.Fatalf("order %s was not taken", id)
				}
				want = append(want, id)
			}
			if round%2 == 1 { // a run that crashes again and again would wait for a person
				s.eventually("an order is in the book", func() bool { return len(s.lines()) > entered })
			}
			s.pause(time.Duration(rand.IntN(150)) * time.Millisecond)
			s.kill()
			s.start()
		}
		s.eventually("every order is in the book", func() bool { return len(s.lines()) >= len(want) })
		s.eventually("the lane is idle", func() bool { return s.lane().Status == "Idle" })
		got := s.lines()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the book has %d lines, %d orders were taken: %s", len(got), len(want), difference(want, got))
		}
		for _, topic := range []string{"order", "entered"} {
			for _, status := range []string{"pending", "reserved"} {
				// A lane is idle between two runs, too.
				s.eventually("no event of "+topic+" is "+status, func() bool {
					var page struct{ Items []any }
					s.call("GET", "/api/v1/workflows/clerk/events?topic="+topic+"&status="+status, nil, &page)
					return len(page.Items) == 0
				})
			}
		}
	})
}

// pause lets the server work for a while.
func (s *server) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.done:
		s.t.Fatal("the server ended by itself")
	}
}

func difference(want, got []string) string {
	count := map[string]int{}
	for _, id := range got {
		count[id]++
	}
	var out []string
	for _, id := range want {
		if count[id] != 1 {
			out = append(out, fmt.Sprintf("%s %d times", id, count[id]))
		}
	}
	return strings.Join(out, ", ")
}

// Two servers share the lanes of one PostgreSQL; when one dies in the middle of
// a run, the other takes it over and nothing is done twice.
func TestAnotherServerTakesAWorkflowOver(t *testing.T) {
	t.Parallel() // it waits more than it works
	database := pgtest.URL(t)
	a := serveClerk(t, database)
	b := serve(t, database)
	b.kill()
	b.args = append(b.args, "--connection-dir", filepath.Join(a.dir, "connections"))
	b.start()
	var want []string
	for i := range 60 {
		id := fmt.Sprintf("o-%d", i)
		if s := []*server{a, b}[i%2]; !s.order(id) {
			t.Fatalf("order %s was not taken", id)
		}
		want = append(want, id)
		if i == 30 {
			a.kill()
			a.start()
		}
	}
	a.kill()
	b.eventually("every order is in the book", func() bool { return len(a.lines()) >= len(want) })
	b.eventually("the lane is idle", func() bool { return b.lane().Status == "Idle" })
	got := a.lines()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the book differs: %s", difference(want, got))
	}
}

// A user writes a file, breaks it, reads the error, mends it, and it goes on
// where it stopped.
func TestUserBreaksAndMendsAWorkflow(t *testing.T) {
	s := serveClerk(t, "sqlite:.pawl/pawl.db")
	file := filepath.Join(s.dir, "clerk.workflow.ts")
	apply := func(script string) (string, int) {
		t.Helper()
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		return s.pawl("apply", "-f", "clerk.workflow.ts")
	}
	if out, code := apply(strings.Replace(clerk, "topics: {", "topics: {{", 1)); code != 1 || !strings.Contains(out, "clerk.workflow.ts:4:") {
		t.Errorf("a syntax error: exit %d, %s", code, out)
	}
	broken := strings.Replace(clerk, "const [order] = await", "const nobody = undefined; nobody.home; const [order] = await", 1)
	if out, code := apply(broken); code != 0 {
		t.Fatalf("apply: exit %d, %s", code, out)
	}
	if !s.order("one") {
		t.Fatal("the order was not taken")
	}
	s.eventually("it needs attention", func() bool { return s.lane().Status == "Needs attention" })
	if issue := s.lane().Issue; !strings.Contains(issue, "clerk.workflow.ts:10:") {
		t.Errorf("the issue does not name the place: %s", issue)
	}
	if out, code := s.pawl("run", "workflow", "clerk"); code != 4 {
		t.Errorf("run now of a halted workflow: exit %d, %s", code, out)
	}
	if out, code := apply(clerk); code != 0 {
		t.Fatalf("apply: exit %d, %s", code, out)
	}
	s.eventually("the order is in the book", func() bool { return slices.Equal(s.lines(), []string{"one"}) })
	s.eventually("it is idle", func() bool { return s.lane().Status == "Idle" })
	if out, code := s.pawl("why", "workflow", "clerk"); code != 0 || !strings.Contains(out, "idle") {
		t.Errorf("why: exit %d, %s", code, out)
	}
}

// pawl runs a command against the server.
func (s *server) pawl(args ...string) (output string, code int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), binary, append(args, "--server", s.url)...)
	cmd.Dir = s.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the exit code tells
	return out.String(), cmd.ProcessState.ExitCode()
}

// A server without a body of scripts still answers for what is wrong with one:
// the limits of the surface hold over HTTP.
func TestHostileScriptsAreRefusedOrContained(t *testing.T) {
	s := serveClerk(t, "sqlite:.pawl/pawl.db")
	for name, script := range map[string]string{
		"an endless top level": `while (true) {} export default {}`,
		"no default export":    `export const x = 1`,
		"a foreign import":     `import fs from "fs"; export default {}`,
	} {
		var problem struct {
			Code   string `json:"code"`
			Errors []struct {
				Pointer string `json:"pointer"`
				Message string `json:"message"`
			} `json:"errors"`
		}
		status := s.call("PUT", "/api/v1/workflows/evil", map[string]any{"script": script, "filename": "evil.workflow.ts"}, &problem)
		if status != http.StatusUnprocessableEntity || len(problem.Errors) == 0 || !strings.HasPrefix(problem.Errors[0].Message, "evil.workflow.ts:1:") {
			t.Errorf("%s: %d %+v", name, status, problem)
		}
	}
	if !s.order("still") {
		t.Fatal("the server takes no orders any more")
	}
	s.eventually("other lanes go on", func() bool { return slices.Contains(s.lines(), "still") })
}

// A run is replayed with what it read then, and a changed script shows what it
// would do otherwise; nothing is done again.
func TestRunIsReplayed(t *testing.T) {
	s := serveClerk(t, "sqlite:.pawl/pawl.db")
	if !s.order("one") {
		t.Fatal("the order was not taken")
	}
	s.eventually("the order is in the book", func() bool { return slices.Equal(s.lines(), []string{"one"}) })
	s.eventually("it is idle", func() bool { return s.lane().Status == "Idle" })
	var page struct {
		Items []struct {
			ID       string `json:"id"`
			Mutation any    `json:"mutation"`
		} `json:"items"`
	}
	s.call("GET", "/api/v1/runs?kind=workflow&lane=clerk", nil, &page)
	id := ""
	for _, r := range page.Items {
		if r.Mutation != nil {
			id = r.ID
		}
	}
	if out, code := s.pawl("replay", id); code != 0 || !strings.Contains(out, "would do the same") {
		t.Errorf("the same script: exit %d, %s", code, out)
	}
	other := strings.Replace(clerk, `line: prepared.data.id`, `line: "no. " + prepared.data.id`, 1)
	if err := os.WriteFile(filepath.Join(s.dir, "other.workflow.ts"), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := s.pawl("replay", id, "--script", "other.workflow.ts")
	if code != 1 || !strings.Contains(out, `would call book.append {"line":"no. one","path":"book.txt"}`) {
		t.Errorf("another script: exit %d, %s", code, out)
	}
	if got := s.lines(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("the book has %v after the replays", got)
	}
}

// Definitions in the folders of pawl serve are applied at start; a faulty one
// is told with its place and leaves what is in force.
func TestServeAppliesTheDefinitionsOfAFolder(t *testing.T) {
	s := serveClerk(t, "sqlite:.pawl/pawl.db")
	s.kill()
	flows := filepath.Join(s.dir, "flows")
	if err := os.MkdirAll(flows, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"clerk.workflow.ts": strings.Replace(clerk, "topics: {", "topics: {{", 1),
		"other.workflow.ts": strings.Replace(clerk, `name: "clerk"`, `name: "other"`, 1),
	} {
		if err := os.WriteFile(filepath.Join(flows, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.args = append(s.args, "flows")
	s.start()
	if status := s.call("GET", "/api/v1/workflows/other", nil, nil); status != http.StatusOK {
		t.Errorf("the workflow of the folder: %d", status)
	}
	if !strings.Contains(s.log.String(), "clerk.workflow.ts:4:") {
		t.Errorf("the fault is not told with its place:\n%s", s.log)
	}
	if !s.order("one") {
		t.Fatal("the workflow that was in force takes no orders")
	}
	s.eventually("the order is in the book", func() bool { return slices.Equal(s.lines(), []string{"one"}) })
}
