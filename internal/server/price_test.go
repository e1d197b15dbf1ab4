package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// surface 2: prices in the folder of connections turn the tokens of an executor
// into USD, from the answer of a graph to the receipt and to why.
func TestPricesOfTheConnectionFolderAreCharged(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		graph := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			model := strings.TrimPrefix(r.URL.Path, "/")
			_, _ = io.WriteString(w, `{"ok":true,"usage":[{"unit":"a","model":"`+model+`","inputTokens":400,"cachedInputTokens":100,"outputTokens":9}]}`)
		}))
		t.Cleanup(graph.Close)
		cfg := configOf(t, database)
		cfg.ConnectionDir = t.TempDir()
		text := "kind: executor\nname: http\ntype: http\ngraphs: {known: {url: '" + graph.URL + "/gpt-x'}, other: {url: '" + graph.URL + "/gpt-y'}}\n" +
			"---\nkind: prices\nmodels: {gpt-x: {input: 1.25, cachedInput: 0.125, output: 10, unit: 1M}}\n"
		if err := os.WriteFile(filepath.Join(cfg.ConnectionDir, "all.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := launch(t, cfg)
		u := &up{t, r.url, strings.TrimPrefix(r.auth, "Bearer ")}
		for name, want := range map[string]struct{ receipt, why string }{
			"known": {`"amountUsd":0.0004775,"costSource":"prices","price":"1.25 in, 0.125 cached, 10 out per 1M tokens"`, ""},
			"other": {`"amountUsd":0,"costSource":"unknown","price":null`, `the model \"gpt-y\" has no price`},
		} {
			_, raw := u.ask(u.admin, "POST", "/api/v1/schedules", `{"name":"`+name+`","graphId":"http:`+name+`","input":{},"cron":"0 0 1 1 *","timezone":"UTC"}`)
			var made struct{ ID string }
			if err := json.Unmarshal([]byte(raw), &made); err != nil || made.ID == "" {
				t.Fatal(raw)
			}
			if status, raw := u.ask(u.admin, "POST", "/api/v1/schedules/"+made.ID+"/run", `{}`); status >= 300 {
				t.Fatalf("%d %s", status, raw)
			}
			eventually(t, "there is a receipt", func() bool {
				_, raw = u.ask(u.admin, "GET", "/api/v1/billing/receipts?schedule="+made.ID, "")
				return strings.Contains(raw, `"amountUsd"`)
			})
			if !strings.Contains(raw, want.receipt) {
				t.Errorf("%s: %s", name, raw)
			}
			eventually(t, "why tells of it", func() bool {
				_, raw = u.ask(u.admin, "GET", "/api/v1/lanes/schedule/"+made.ID+"/why", "")
				return strings.Contains(raw, want.why)
			})
			if want.why == "" && strings.Contains(raw, "has no price") {
				t.Errorf("%s: %s", name, raw)
			}
		}
	})
}

func TestBadPricesKeepTheServerFromStarting(t *testing.T) {
	cfg := configOf(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	cfg.ConnectionDir = t.TempDir()
	if err := os.WriteFile(filepath.Join(cfg.ConnectionDir, "prices.yaml"), []byte("kind: prices\nmodels: {m: {input: -1, output: 1, unit: 1M}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{cfg: cfg, log: newLogger(cfg.Logs, "text", "error")}
	defer s.close()
	if err := s.build(t.Context()); err == nil || !strings.Contains(err.Error(), "prices") {
		t.Error(err)
	}
}
