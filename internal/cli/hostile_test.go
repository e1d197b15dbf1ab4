package cli

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/cli/agent"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/visible"
)

// hostileTexts are what somebody outside may say, as JavaScript, with what must
// be seen of it: all of it for people, and the very text for programs.
var hostileTexts = map[string]struct{ script, seen, value string }{
	"bidi":       {`"pay \u202e0001\u202c EUR \u2066x\u2069 end"`, `pay \u202e0001\u202c EUR \u2066x\u2069 end`, "pay \u202e0001\u202c EUR \u2066x\u2069 end"},
	"zero-width": {`"pay 1\u200b0\u2060\ufeff\u00ad\u3164 end"`, `pay 1\u200b0\u2060\ufeff\u00ad\u3164 end`, "pay 1\u200b0\u2060\ufeff\u00ad\u3164 end"},
	"escape":     {`"a \u001b[2J\u001b]0;owned\u0007 \u009b31m\u007f end"`, `31m`, "a \x1b[2J\x1b]0;owned\a \u009b31m\x7f end"},
	"markup":     {`"<script>alert(1)</script>' \" & end"`, `<script>alert(1)</script>' `, "<script>alert(1)</script>' \" & end"},
	"surrogate":  {`"half \ud800 a character end"`, "half \uFFFD a character end", "half \uFFFD a character end"},
	"long":       {`"long ".repeat(100000) + "end"`, "long long long", "long long long"},
}

// hostileScript takes in a text as the title of an input, as what is published
// and as what is logged, and fails with it.
func hostileScript(name, text string) string {
	return `const text = ` + text + `;
export default {
  name: "` + name + `",
  topics: { t: {} },
  producers: { look: { publishes: ["t"], schedule: { interval: "1h" }, handler: async (ctx) => {
    const short = text.slice(0, 500);
    ctx.log(text);
    ctx.publish("t", { messageId: "m", inputId: ctx.registerInput({ source: "shop", type: "order", id: "o", title: short }), payload: { short } });
  } } },
  consumers: { take: { subscribe: ["t"], prepare: async (ctx) => {
    if ((await ctx.peek("t")).length === 0) return { reservations: [], data: {} };
    ctx.log(text);
    throw new Error(text);
  } } },
};
`
}

// heard is a webhook that keeps what it is told.
type heard struct {
	mu      sync.Mutex
	bodies  []string
	arrived chan struct{}
}

func (h *heard) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	h.bodies = append(h.bodies, string(body))
	h.mu.Unlock()
	h.arrived <- struct{}{}
}

// await waits for what is told of a lane.
func (h *heard) await(t *testing.T, lane string) string {
	t.Helper()
	limit := time.After(30 * time.Second)
	for {
		h.mu.Lock()
		for _, body := range h.bodies {
			if strings.Contains(body, `"lane":"`+lane+`"`) {
				h.mu.Unlock()
				return body
			}
		}
		h.mu.Unlock()
		select {
		case <-h.arrived:
		case <-limit:
			t.Fatalf("nothing is told of %s", lane)
		}
	}
}

// What is said outside cannot pretend to be something else on any surface:
// pages, commands in each format, tools for agents and notices show every hidden
// character as what it is, bounded, and programs get the very text from the API.
func TestHostileTextOnEverySurface(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		told := &heard{arrived: make(chan struct{}, 100)}
		hook := httptest.NewServer(told)
		t.Cleanup(hook.Close)
		h := serve(t, "--database", database, "--notify-webhook", hook.URL, "--allow-private", "127.0.0.0/8")
		defer h.end()
		for name, c := range hostileTexts {
			if err := os.WriteFile(filepath.Join(h.dir, name+".workflow.js"), []byte(hostileScript(name, c.script)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h.pawl("apply", "-f", h.dir).expect(t, pawl.ExitDone)
		b, tools, tag := h.browser(), h.agent(), regexp.MustCompile(`<[^>]*>`)
		for name, c := range hostileTexts {
			h.until("needs attention", "why", "workflow", name)
			h.until("failed:logic", "get", "runs", "--lane", name)
			var runs struct{ Items []client.Run }
			h.read("/api/v1/runs?kind=workflow&status=failed:logic&lane="+name, &runs)
			id := runs.Items[0].ID
			if got := runs.Items[0].Error.Message; !strings.Contains(got, c.value) {
				t.Errorf("%s: the API says %.300q, want the very text", name, got)
			}
			surfaces := map[string]string{}
			for _, path := range []string{"/", "/runs", "/timeline", "/audit", "/workflows/" + name, "/workflows/" + name + "/why", "/workflows/" + name + "/runs", "/runs/" + id} {
				page := b(path)
				surfaces["page "+path] = html.UnescapeString(tag.ReplaceAllString(page, ""))
				if strings.Contains(page, "<script>alert") {
					t.Errorf("%s: %s runs it", name, path)
				}
			}
			for _, args := range [][]string{{"get", "lanes"}, {"get", "runs", "--lane", name}, {"get", "inputs", "--workflow", name}, {"get", "run", id}} {
				for _, format := range []string{"table", "wide", "json", "yaml"} {
					surfaces[strings.Join(args, " ")+" "+format] = h.pawl(append(args, "-o", format)...).stdout
				}
			}
			for _, args := range [][]string{{"why", "workflow", name}, {"describe", "workflow", name}, {"describe", "run", id}} {
				surfaces[strings.Join(args, " ")] = h.pawl(args...).stdout
			}
			surfaces["tool list_lanes"] = tools("list_lanes", nil)
			surfaces["tool why"] = tools("why", map[string]any{"kind": "workflow", "name": name})
			surfaces["tool get_run"] = tools("get_run", map[string]any{"id": id})
			surfaces["tool that is refused"] = tools("get_run", map[string]any{"id": c.value})
			surfaces["notice"] = unquoted(t, told.await(t, name))
			for what, text := range surfaces {
				shownHonestly(t, name+": "+what, text)
			}
			for _, what := range []string{"page /runs/" + id, "page /workflows/" + name, "why workflow " + name, "describe run " + id, "notice", "tool get_run"} {
				if !strings.Contains(surfaces[what], c.seen) {
					t.Errorf("%s: %s does not show %s:\n%.2000s", name, what, c.seen, surfaces[what])
				}
			}
		}
	})
}

// shownHonestly fails the test if a text for people has something that nobody
// sees, or more than anybody reads.
func shownHonestly(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) || text == "" || len(text) > 200_000 {
		t.Errorf("%s has %d bytes, valid: %v", what, len(text), utf8.ValidString(text))
	}
	if i := strings.IndexFunc(text, visible.Hidden); i >= 0 {
		t.Errorf("%s carries %q", what, text[max(0, i-40):min(len(text), i+40)])
	}
}

// read reads JSON of the API.
func (h *house) read(path string, into any) {
	h.t.Helper()
	raw, err := h.api.GetWith(h.t.Context(), strings.Split(path, "?")[0], queryOf(h.t, path))
	if err != nil {
		h.t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		h.t.Fatal(err)
	}
}

func queryOf(t *testing.T, path string) url.Values {
	t.Helper()
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query()
}

// browser signs in, and reads pages.
func (h *house) browser() func(path string) string {
	h.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	c := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	token, err := os.ReadFile(filepath.Join(h.dir, ".pawl", "admin.token"))
	if err != nil {
		h.t.Fatal(err)
	}
	ask := func(method, path string, body io.Reader) string {
		h.t.Helper()
		req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, body)
		if err != nil {
			h.t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := c.Do(req)
		if err != nil {
			h.t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			h.t.Fatalf("%s answers %d, %v", path, resp.StatusCode, err)
		}
		return string(text)
	}
	ask("POST", "/signin", strings.NewReader(url.Values{"token": {strings.TrimSpace(string(token))}}.Encode()))
	return func(path string) string { h.t.Helper(); return ask("GET", path, nil) }
}

// agent calls tools as an agent does.
func (h *house) agent() func(name string, arguments map[string]any) string {
	h.t.Helper()
	routes, err := agent.Routes(h.t.Context(), h.api)
	if err != nil {
		h.t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	if _, err := agent.New(h.api, "test", routes, false).Connect(h.t.Context(), there, nil); err != nil {
		h.t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(h.t.Context(), here, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = session.Close() })
	return func(name string, arguments map[string]any) string {
		h.t.Helper()
		out, err := session.CallTool(h.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			h.t.Fatal(err)
		}
		return out.Content[0].(*mcp.TextContent).Text
	}
}

// unquoted is the text of a notice as whoever gets it reads it.
func unquoted(t *testing.T, body string) string {
	t.Helper()
	var notice struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &notice); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var all []string
	for key, value := range notice.Data {
		all = append(all, fmt.Sprintf("%s: %s", key, value))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
