package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stage is a server with all three kinds at work, and the outside that they
// speak to.
type stage struct {
	*server
	link    string // signs in once; empty where there is no terminal
	orders  atomic.Int32
	placed  sync.Map      // what was ordered: the JSON of each body
	hold    chan struct{} // a page of prices waits for something in it, once slow is set
	slow    atomic.Bool
	round   atomic.Int32 // of prices: each has other rows
	reports string       // id of the schedule

	elsewhere string // address of the outside
}

func newStage(t *testing.T) *stage {
	t.Helper()
	g := &stage{hold: make(chan struct{})}
	outside := httptest.NewServer(g.outside())
	t.Cleanup(outside.Close)
	g.elsewhere = outside.URL
	dir := t.TempDir()
	connections := filepath.Join(dir, "connections")
	for name, text := range map[string]string{
		"connections/desk.yaml":      "kind: connection\nname: desk\ntype: http\nbaseUrl: " + outside.URL + "\n",
		"connections/courier.yaml":   "kind: connection\nname: courier\ntype: http\nbaseUrl: " + outside.URL + "\npolicy: {post: allow}\n",
		"connections/executors.yaml": fmt.Sprintf("kind: executor\nname: http\ntype: http\ngraphs:\n  report: {url: %q, timeout: 1m}\n  poet: {url: %q, timeout: 1m}\n  sync: {url: %q, timeout: 1m}\n", outside.URL+"/report", outside.URL+"/poet", outside.URL+"/sync"),
		"provider.yaml":              fmt.Sprintf("kind: provider\ndomain: %q\nlimit: 600\nperiod: 1m\n", outside.Listener.Addr().String()),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addr := freeAddr(t)
	g.server = &server{t: t, dir: dir, url: "http://" + addr, log: &logBuffer{}}
	g.args = []string{"serve", "--addr", addr, "--database", "sqlite:.pawl/pawl.db", "--allow-private", "127.0.0.1/32", "--connection-dir", connections, "--provider", filepath.Join(dir, "provider.yaml")}
	g.launchAtTerminal()
	t.Cleanup(func() {
		g.kill()
		if t.Failed() {
			t.Logf("log:\n%s", g.log)
		}
	})
	g.define(outside.URL)
	return g
}

// launchAtTerminal starts the server as a person does, and reads the link that
// it prints.
func (g *stage) launchAtTerminal() {
	g.t.Helper()
	reader, terminal := openTerminal(g.t)
	if terminal == nil {
		g.start()
		return
	}
	g.launchWith(terminal)
	found := make(chan string, 1)
	go func() {
		link := regexp.MustCompile(`http\S+/signin\?code=[A-Z0-9]+`)
		lines := bufio.NewScanner(reader)
		for lines.Scan() {
			_, _ = g.log.Write(append(lines.Bytes(), '\n'))
			if m := link.FindString(lines.Text()); m != "" {
				found <- m
			}
		}
	}()
	select {
	case g.link = <-found:
	case <-time.After(90 * time.Second):
		g.t.Fatalf("the server prints no link:\n%s", g.log)
	}
}

// outside is what the server speaks to: an order desk, a courier whose answers
// get lost, prices in pages, and two graphs.
func (g *stage) outside() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			g.placed.Store(string(body), true)
		}
		_, _ = fmt.Fprintf(w, `{"order":%d,"state":"placed"}`, 1000+g.orders.Add(1))
	})
	mux.HandleFunc("POST /parcels", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("GET /prices", g.prices)
	mux.HandleFunc("POST /report", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"ok":true,"output":{"lines":12},"usage":[{"unit":"u","model":"small","inputTokens":900,"outputTokens":210,"costUsd":0.0042}]}`)
	})
	mux.HandleFunc("POST /sync", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true,"output":{}}`) })
	mux.HandleFunc("GET /stock", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the warehouse is closed", http.StatusServiceUnavailable)
	})
	var mu sync.Mutex
	asked := map[string]bool{}
	mux.HandleFunc("POST /poet", func(w http.ResponseWriter, r *http.Request) {
		var run struct {
			RunID  string          `json:"runId"`
			Resume json.RawMessage `json:"resume"`
		}
		_ = json.NewDecoder(r.Body).Decode(&run) // what is missing is asked for
		mu.Lock()
		defer mu.Unlock()
		if len(run.Resume) == 0 && !asked[run.RunID] {
			asked[run.RunID] = true
			_, _ = io.WriteString(w, `{"ok":false,"interrupt":{"question":"Publish the poem about autumn?","poem":"Leaves turn, and so do wheels."}}`)
			return
		}
		_, _ = io.WriteString(w, `{"ok":true,"output":{"published":true}}`)
	})
	return mux
}

// prices answers three pages of rows, of which one does not fit.
func (g *stage) prices(w http.ResponseWriter, r *http.Request) {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	round := int(g.round.Load())
	if page <= 1 {
		round = int(g.round.Add(1))
	}
	if g.slow.Load() && page > 1 {
		select {
		case <-g.hold:
		case <-r.Context().Done():
			return
		}
	}
	symbols := []string{"ASML", "SAP", "NVDA", "MSFT", "TSM", "AAPL", "AMZN", "SHOP"}
	type row map[string]any
	var rows []row
	for i := range 4 + (round*7+page)%20 {
		n := round*100 + page*30 + i
		rows = append(rows, row{
			"symbol": symbols[n%len(symbols)], "day": time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n%300).Format(time.DateOnly),
			"quote": row{"close": 100 + float64(n%977)/10}, "updatedAt": "2026-11-01T10:00:00Z",
		})
	}
	if page == 2 {
		rows = append(rows, row{"symbol": "ZZZ", "day": "someday", "quote": row{"close": "n/a"}})
	}
	_ = json.NewEncoder(w).Encode(row{"data": rows, "hasMore": page < 3}) // whoever asked may be gone
}

// acting is a workflow that makes a call for every event of its topic.
func acting(name, tool, path, title string) string {
	return `import { workflow } from "pawl";
export default workflow({
  name: "` + name + `",
  topics: { placed: {} },
  consumers: {
    act: {
      subscribe: ["placed"],
      async prepare(ctx) {
        const [e] = await ctx.peek("placed");
        if (!e) return { reservations: [], data: {} };
        return { reservations: [{ topic: "placed", ids: [e.messageId] }], data: e.payload, ui: { title: ` + "`" + title + "`" + ` } };
      },
      async mutate(ctx, p) { if (p.reservations.length) await ctx.tools.` + tool + `.post({ path: "` + path + `", body: p.data }); },
    },
  },
});
`
}

// looking is a workflow that looks for work and finds none.
const looking = `import { workflow } from "pawl";
export default workflow({
  name: "inbox",
  topics: { mail: {} },
  producers: { look: { publishes: ["mail"], schedule: { interval: "20s" }, handler: async () => {} } },
  consumers: { read: { subscribe: ["mail"], async prepare() { return { reservations: [], data: {} }; } } },
});
`

// define puts all three kinds in force.
func (g *stage) define(outside string) {
	g.t.Helper()
	g.must("PUT", "/api/v1/workflows/orders", map[string]any{"script": acting("orders", "desk", "/orders", "Order ${e.payload.quantity} × ${e.payload.item}"), "filename": "orders.workflow.ts"}, nil)
	g.must("PUT", "/api/v1/workflows/shipping", map[string]any{"script": acting("shipping", "courier", "/parcels", "Ship ${e.payload.item} to ${e.payload.to}"), "filename": "shipping.workflow.ts"}, nil)
	g.must("PUT", "/api/v1/workflows/inbox", map[string]any{"script": looking, "filename": "inbox.workflow.ts"}, nil)
	g.must("PUT", "/api/v1/sources/prices", map[string]any{
		"url": outside + "/prices", "table": "prices", "schedule": "hourly",
		"offsetPagination": map[string]any{"pageParam": "page", "limitParam": "limit", "limit": 100, "hasMorePath": "hasMore"},
		"response": map[string]any{"dataPath": "data", "fields": []any{
			map[string]any{"source": "symbol", "target": "symbol", "required": true}, map[string]any{"source": "day", "target": "day", "type": "date", "required": true},
			map[string]any{"source": "quote.close", "target": "close", "type": "number"}, map[string]any{"source": "updatedAt", "target": "changed_at", "type": "timestamp"},
		}},
		"write": map[string]any{"mode": "upsert", "key": []any{"symbol", "day"}},
	}, nil)
	var made struct {
		ID string `json:"id"`
	}
	g.must("POST", "/api/v1/schedules", map[string]any{"name": "daily-report", "graphId": "http:report", "input": map[string]any{"team": "sales"}, "cron": "30 2 * * *", "timezone": "Europe/Berlin"}, &made)
	g.reports = made.ID
	g.must("POST", "/api/v1/schedules", map[string]any{"name": "evening-poet", "graphId": "http:poet", "input": map[string]any{"topic": "autumn"}, "cron": "0 19 * * *", "timezone": "Europe/Berlin"}, &made)
	g.must("POST", "/api/v1/schedules/"+made.ID+"/run", nil, nil)
}

// must asks the API, or fails the test.
func (g *stage) must(method, path string, body, out any) {
	g.t.Helper()
	var answer json.RawMessage
	if status := g.call(method, path, body, &answer); status >= 300 {
		g.t.Fatalf("%s %s answered %d: %s", method, path, status, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			g.t.Fatal(err)
		}
	}
}

// happens publishes an event to a workflow.
func (g *stage) happens(workflow, id, title string, payload map[string]any) {
	g.t.Helper()
	g.must("POST", "/api/v1/workflows/"+workflow+"/events", map[string]any{
		"topic": "placed", "messageId": id, "payload": payload, "input": map[string]any{"source": "shop", "type": "order", "id": id, "title": title},
	}, nil)
}
