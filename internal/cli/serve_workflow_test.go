package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

const helloScript = `import { workflow } from "pawl";
export default workflow({
  name: "hello",
  labels: { team: "data" },
  topics: { "guest.came": {} },
  producers: {
    door: {
      publishes: ["guest.came"], schedule: { interval: "1h" },
      async handler(ctx) {
        const inputId = ctx.registerInput({ source: "door", type: "guest", id: "ann", title: "Ann at the door" });
        ctx.publish("guest.came", { messageId: "ann", inputId, payload: {} });
      },
    },
  },
  consumers: {
    greet: {
      subscribe: ["guest.came"],
      async prepare(ctx) {
        const guests = await ctx.peek("guest.came");
        ctx.log("guests:", guests.length);
        return { reservations: guests.map((g) => ({ topic: "guest.came", ids: [g.messageId] })), data: {} };
      },
    },
  },
});
`

// until runs a command again and again, until it shows a word.
func (h *house) until(word string, args ...string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 30*time.Second)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		r := h.pawl(args...)
		if strings.Contains(r.stdout, word) {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			h.t.Fatalf("%v does not show %q: %+v", args, word, r)
		}
	}
}

// shows fails the test unless a command succeeds and shows all of the words.
func (h *house) shows(args []string, words ...string) {
	h.t.Helper()
	r := h.pawl(args...)
	r.expect(h.t, pawl.ExitDone)
	for _, w := range words {
		if !strings.Contains(r.stdout, w) {
			h.t.Errorf("%v lacks %q:\n%s", args, w, r.stdout)
		}
	}
}

// The commands and the API of this version fit each other.
func TestWorkflowFromItsFileToItsEnd(t *testing.T) {
	h := serve(t)
	defer h.end()
	if err := os.WriteFile(filepath.Join(h.dir, "hello.workflow.ts"), []byte(helloScript), 0o600); err != nil {
		t.Fatal(err)
	}
	h.shows([]string{"apply", "-f", ".", "--dry-run"}, "workflow hello created (dry run)")
	h.shows([]string{"apply", "-f", "."}, "workflow hello created\n")
	h.shows([]string{"apply", "-f", "."}, "workflow hello unchanged\n")

	h.until("done", "get", "inputs", "hello")
	h.until("Idle", "get", "workflows")
	h.shows([]string{"get", "lanes", "-l", "team=data", "-o", "wide"}, "workflow", "hello", "Every hour")
	h.shows([]string{"get", "events", "hello", "--topic", "guest.came", "--status", "consumed"}, "guest.came", "ann")
	h.shows([]string{"next", "--hours", "2"}, "hello", "Every hour")
	h.shows([]string{"describe", "workflow", "hello"}, "hello.workflow.ts", "door", "greet", "guest.came", "team=data")
	h.shows([]string{"why", "workflow", "hello", "--at", "2020-01-01"}, "It did not exist then", "wanted", "greet")
	h.shows([]string{"get", "runs", "--workflow", "hello", "--status", "committed"}, "hello/door", "hello/greet")

	var runs struct{ Items []client.RunDetail }
	if err := json.Unmarshal([]byte(h.pawl("get", "runs", "--lane", "hello", "-o", "json").stdout), &runs); err != nil || len(runs.Items) == 0 {
		t.Fatalf("%v, %v", runs, err)
	}
	h.shows([]string{"describe", "run", runs.Items[0].ID}, "of the workflow hello.", "It is done.", "guests:")
	h.pawl("cancel", runs.Items[0].ID).expect(t, pawl.ExitRefused)

	var inputs struct{ Items []client.InputDetail }
	if err := json.Unmarshal([]byte(h.pawl("get", "inputs", "hello", "-o", "json").stdout), &inputs); err != nil || len(inputs.Items) != 1 {
		t.Fatalf("%v, %v", inputs, err)
	}
	h.shows([]string{"describe", "input", inputs.Items[0].ID}, "Ann at the door", "guest.came")
	h.shows([]string{"skip", inputs.Items[0].ID}, "skipped")

	h.shows([]string{"pause", "-l", "team=data"}, "workflow hello paused")
	h.pawl("run", "workflow", "hello").expect(t, pawl.ExitRefused, "(paused)")
	h.shows([]string{"publish", "hello", "guest.came", "--id", "bob", "--input", "door:guest:bob", "--title", "Bob"}, "event bob published")
	h.shows([]string{"publish", "hello", "guest.came", "--id", "ann"}, "event ann was known")
	h.pawl("publish", "hello", "guest.went", "--id", "ann").expect(t, pawl.ExitFailed, "/topic")
	h.shows([]string{"resume", "workflow", "hello"}, "workflow hello resumed")
	h.until("Bob", "get", "inputs", "hello", "--status", "done")

	h.pawl("delete", "workflow", "hello").expect(t, pawl.ExitUsage)
	h.until("deleted", "delete", "workflow", "hello", "--yes")
	h.pawl("get", "workflow", "hello").expect(t, pawl.ExitNotFound)
}

func TestWatchOfWorkflowsOfARealServer(t *testing.T) {
	h := serve(t)
	defer h.end()
	if err := os.WriteFile(filepath.Join(h.dir, "hello.workflow.ts"), []byte(helloScript), 0o600); err != nil {
		t.Fatal(err)
	}
	h.shows([]string{"apply", "hello.workflow.ts"}, "created")
	h.until("done", "get", "inputs", "hello")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	p, stdout, stderr := h.process(t, "get", "workflow", "hello", "-w")
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, p) }()
	stdout.await(ctx, t, "hello")
	h.shows([]string{"pause", "workflow", "hello"}, "paused")
	stdout.await(ctx, t, "Stopped")
	h.shows([]string{"delete", "workflow", "hello", "--yes"}, "deleted")
	stderr.await(ctx, t, "workflow hello is gone.")
	cancel()
	if code := <-ended; code != pawl.ExitDone {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
