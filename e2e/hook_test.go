package e2e

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/pgtest"
)

const hookSecret = "It's a Secret to Everybody"

// triage takes issues, one in each run.
const triage = `import { workflow, consumer } from "pawl";
export default workflow({
  name: "triage",
  topics: { "issue.opened": {} },
  consumers: {
    look: consumer({
      subscribe: ["issue.opened"],
      async prepare(ctx) {
        const events = await ctx.peek("issue.opened", { limit: 100 });
        if (events.length === 0) return { reservations: [], data: {} };
        return { reservations: [{ topic: "issue.opened", ids: events.map((e) => e.messageId) }], data: {} };
      },
    }),
  },
});
`

// githubHook is the one of the documentation.
const githubHook = `kind: hook
name: github
verify: {scheme: github, secret: "${E2E_GITHUB_SECRET}"}
deliveryId: header:X-GitHub-Delivery
when: {header:X-GitHub-Event: issues, body:action: opened}
publish: {workflow: triage, topic: issue.opened, payload: body}
maxBytes: 1MiB
`

// hooked is a server with an address of its own for hooks.
type hooked struct {
	*server
	hooks string // its URL
}

// serveHooks starts a server on a folder with the files; t.Setenv gives it the
// secret.
func serveHooks(t *testing.T, database string, files map[string]string) hooked {
	t.Helper()
	t.Setenv("E2E_GITHUB_SECRET", hookSecret)
	addr, hookAddr := freeAddr(t), freeAddr(t)
	s := &server{t: t, dir: t.TempDir(), url: "http://" + addr, log: &logBuffer{}}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(s.dir, "definitions"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, "definitions", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.args = []string{"serve", "--addr", addr, "--hook-addr", hookAddr, "--database", database}
	if len(files) > 0 {
		s.args = append(s.args, "definitions")
	}
	s.start()
	t.Cleanup(func() {
		s.kill()
		if strings.Contains(s.log.String(), "WARNING: DATA RACE") {
			t.Error("the server has a data race")
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", s.url, s.log)
		}
	})
	return hooked{s, "http://" + hookAddr}
}

// deliver posts as GitHub does; 0 is no answer.
func (h hooked) deliver(base, id, event string) int {
	const body = issueOpened
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/hooks/github", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(hookSecret))
	_, _ = io.WriteString(mac, body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	req.Header.Set("X-GitHub-Delivery", id)
	req.Header.Set("X-GitHub-Event", event)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// run runs a command of the binary against the server.
func (h hooked) run(args ...string) (string, error) {
	cmd := exec.CommandContext(h.t.Context(), binary, append(args, "--server", h.url)...)
	cmd.Dir = h.dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// events are the ids of the messages of the workflow triage, with how often each is
// there.
func (h hooked) events() map[string]int {
	h.t.Helper()
	out := map[string]int{}
	for cursor := ""; ; {
		var page client.Page[struct {
			MessageID string `json:"messageId"`
		}]
		h.call("GET", "/api/v1/workflows/triage/events?limit=500&cursor="+cursor, nil, &page)
		for _, e := range page.Items {
			out[e.MessageID]++
		}
		if cursor = string(page.NextCursor); cursor == "" {
			return out
		}
	}
}

const issueOpened = `{"action":"opened","issue":{"id":7}}`

// What was sent is not lost and not doubled, whenever the server is killed: a sender
// sends again until it gets an answer.
func TestKilledServerLosesNoDelivery(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		h := serveHooks(t, database, map[string]string{"triage.workflow.ts": triage, "github.yaml": githubHook})
		const senders, each = 8, 40
		var wg sync.WaitGroup
		var accepted sync.Map
		for n := range senders {
			wg.Go(func() {
				for i := range each {
					id := fmt.Sprintf("d-%d-%d", n, i)
					h.eventually("somebody answers", func() bool {
						status := h.deliver(h.hooks, id, "issues")
						if status == http.StatusAccepted {
							if _, twice := accepted.LoadOrStore(id, true); twice {
								t.Errorf("%s was accepted twice", id)
							}
						}
						return status == http.StatusAccepted || status == http.StatusOK
					})
				}
			})
		}
		all := make(chan struct{})
		go func() { wg.Wait(); close(all) }()
		for kills := 0; ; kills++ {
			select {
			case <-all:
				if kills == 0 {
					t.Error("nothing was killed meanwhile")
				}
				events := h.events()
				if len(events) != senders*each {
					t.Errorf("there are %d events, want %d", len(events), senders*each)
				}
				for id, n := range events {
					if n != 1 {
						t.Errorf("%s is there %d times", id, n)
					}
				}
				return
			case <-time.After(time.Duration(20+rand.IntN(150)) * time.Millisecond):
				if kills < 6 {
					h.kill()
					h.start()
				}
			}
		}
	})
}

// Everything that a user does with a hook, through the binary.
func TestAHookFromEndToEnd(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		h := serveHooks(t, database, map[string]string{"triage.workflow.ts": triage})
		if status := h.deliver(h.hooks, "d0", "issues"); status != http.StatusNotFound {
			t.Errorf("before there is a hook: %d", status)
		}
		file := filepath.Join(h.dir, "github.yaml")
		if err := os.WriteFile(file, []byte(githubHook), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := h.run("apply", "-f", file); err != nil || !strings.Contains(out, "hook github created") {
			t.Fatalf("apply: %s, %v", out, err)
		}
		for _, c := range []struct {
			what, base, id, event string
			want                  int
		}{
			{"a delivery", h.hooks, "d1", "issues", http.StatusAccepted},
			{"the same again", h.hooks, "d1", "issues", http.StatusOK},
			{"one that is filtered", h.hooks, "d2", "push", http.StatusAccepted},
			{"at the address of the API", h.url, "d3", "issues", http.StatusNotFound},
		} {
			if status := h.deliver(c.base, c.id, c.event); status != c.want {
				t.Errorf("%s: %d, want %d", c.what, status, c.want)
			}
		}
		for _, path := range []string{"/api/v1/hooks", "/healthz", "/", "/metrics", "/hooks"} {
			if resp, err := http.Get(h.hooks + path); err != nil || resp.StatusCode != http.StatusNotFound {
				t.Errorf("the address of hooks serves %s: %v", path, err)
			} else {
				_ = resp.Body.Close()
			}
		}
		var page client.Page[client.Delivery]
		h.call("GET", "/api/v1/hooks/github/deliveries", nil, &page)
		if len(page.Items) != 2 || page.Items[0].Outcome != "filtered" || page.Items[1].Outcome != "delivered" {
			t.Fatalf("the deliveries are %+v", page.Items)
		}
		if out, err := h.run("get", "hooks"); err != nil || !strings.Contains(out, "publishes issue.opened to the workflow triage") {
			t.Errorf("get hooks: %s, %v", out, err)
		}
		if out, err := h.run("get", "deliveries"); err != nil || !strings.Contains(out, "header:X-GitHub-Event is push, not issues") {
			t.Errorf("get deliveries: %s, %v", out, err)
		}
		if out, err := h.run("get", "deliveries", "github", "--outcome", "delivered"); err != nil || strings.Contains(out, "filtered") || !strings.Contains(out, "published issue.opened") {
			t.Errorf("get deliveries github: %s, %v", out, err)
		}
		var again client.Delivery
		if status := h.call("POST", "/api/v1/hooks/github/deliveries/"+page.Items[1].ID+"/redeliver", nil, &again); status != http.StatusAccepted || again.Effects != 2 {
			t.Errorf("redeliver: %d, %+v", status, again)
		}
		if status := h.call("POST", "/api/v1/hooks/github/deliveries/"+page.Items[0].ID+"/redeliver", nil, nil); status != http.StatusConflict {
			t.Errorf("redeliver what is filtered: %d", status)
		}
		if out, err := h.run("redeliver", "github", "d1"); err != nil || !strings.Contains(out, "delivered: published issue.opened to triage") {
			t.Errorf("redeliver: %s, %v", out, err)
		}
		h.eventually("three events", func() bool { return len(h.events()) == 3 })
		// The secret is nowhere, and the hook is as good after a restart.
		for _, path := range []string{"/api/v1/hooks/github", "/api/v1/hooks/github/deliveries"} {
			var text any
			h.call("GET", path, nil, &text)
			if strings.Contains(fmt.Sprint(text), hookSecret) {
				t.Errorf("%s tells the secret", path)
			}
		}
		h.kill()
		h.start()
		if status := h.deliver(h.hooks, "d1", "issues"); status != http.StatusOK {
			t.Errorf("after a restart: %d", status)
		}
		if out, err := h.run("delete", "hook", "github", "--yes"); err != nil {
			t.Errorf("delete: %s, %v", out, err)
		}
		if status := h.deliver(h.hooks, "d9", "issues"); status != http.StatusNotFound {
			t.Errorf("after it was deleted: %d", status)
		}
	})
}

// Without an address of their own deliveries come in at that of the server, under
// any name that leads there.
func TestHooksAtTheMainAddress(t *testing.T) {
	t.Setenv("E2E_GITHUB_SECRET", hookSecret)
	h := hooked{serve(t, pgtest.SQLite(t)), ""}
	if status := h.call("PUT", "/api/v1/hooks/github", map[string]any{
		"verify": map[string]any{"scheme": "github", "secret": "${E2E_GITHUB_SECRET}"}, "job": map[string]any{"task": "log"},
	}, nil); status != http.StatusCreated {
		t.Fatalf("apply: %d", status)
	}
	if status := h.deliver(h.url, "d1", "issues"); status != http.StatusAccepted {
		t.Errorf("a delivery: %d", status)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+"/hooks/nobody", nil)
	req.Host = "tunnel.example.com"
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != http.StatusNotFound {
		t.Fatalf("under another name: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
}

// A person sees what came in and why it was refused, and delivers it again.
func TestHooksInABrowser(t *testing.T) {
	h := serveHooks(t, pgtest.SQLite(t), map[string]string{"triage.workflow.ts": triage, "github.yaml": githubHook})
	h.deliver(h.hooks, "first-delivery", "issues")
	h.deliver(h.hooks, "a-push", "push")
	b := openTab(t, h.url)
	b.size(1280, 860, 1)
	b.open("/")
	b.do("paste the token", chromedp.SendKeys(chromedp.CSS("input[name=token]"), h.token()))
	b.press("Sign in")
	b.sees("Overview")
	b.press("Hooks")
	b.sees("publishes issue.opened to the workflow triage")
	b.press("github")
	b.sees("first-delivery", "published issue.opened to triage", "a-push", "header:X-GitHub-Event is push, not issues", "POST /hooks/github")
	h.deliver(h.hooks, "while-they-look", "issues")
	b.sees("while-they-look") // without loading the page
	picture(t, b, "hook")
	b.press("first-delivery")
	b.sees("1 time", `"action": "opened"`)
	b.press("Deliver again")
	b.sees("Delivered again.", "2 times")
	picture(t, b, "delivery")
	b.open("/webhooks")
	picture(t, b, "hooks")
	b.size(390, 800, 1)
	b.open("/webhooks/github")
	if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 390 {
		t.Errorf("on a narrow screen the page is %d wide", wide)
	}
	picture(t, b, "hook-narrow")
	b.quiet()
	if n := len(h.events()); n != 3 {
		t.Errorf("there are %d events", n)
	}
}

// picture writes what is seen to the folder for pictures, if there is one.
func picture(t *testing.T, b *tab, name string) {
	t.Helper()
	dir := os.Getenv(picturesIn)
	if dir == "" {
		return
	}
	raw, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}
