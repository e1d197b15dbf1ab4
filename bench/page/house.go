package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/server"
	"github.com/pawlrun/pawl/internal/store"
)

// house is a server on a database that is full.
type house struct {
	cfg   server.Config
	asked asked
	clean []func()

	at      string        // URL of the server
	started time.Duration // how long its last start took
	bytes   int64         // of the database
	token   string
	stop    context.CancelFunc
	ended   chan error
	client  *http.Client
}

const jsonType = "application/json"

const workflow = `export default { name: "seed", topics: { t: {} }, producers: { look: { publishes: ["t"], schedule: { interval: "12h" }, handler: async () => ({}) } },
	consumers: { act: { subscribe: ["t"], prepare: async () => ({ reservations: [] }), mutate: async () => {} } } };`

const source = `{"url":"http://127.0.0.1:9/x","table":"seed","schedule":"daily","response":{"dataPath":"items","fields":[{"source":"id","target":"id","type":"integer"}]},"write":{"key":["id"]}}`

const schedule = `{"name":"seed","graphId":"http:seed","input":{},"cron":"0 9 * * *","timezone":"Europe/Berlin"}`

// open fills a database and starts a server on it. One that is named is not removed,
// and is filled only if it was not.
func open(ctx context.Context, r *measure.Report, p measure.Place, s plan) (h *house, err error) {
	h = &house{cfg: server.Default()}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	h.cfg.Addr, h.cfg.Roles, h.cfg.Logs, h.cfg.LogLevel, h.cfg.Trace = "127.0.0.1:0", []string{server.RoleAPI}, io.Discard, "error", h.asked.note
	var clean func()
	if h.cfg.Database = s.at; s.at == "" {
		if h.cfg.Database, clean, err = p.Database(ctx); err != nil {
			return h, err
		}
		h.clean = append(h.clean, clean)
	}
	if h.cfg.Data, clean, err = p.Folder(); err != nil {
		return h, err
	}
	h.clean = append(h.clean, clean)
	if err := h.start(ctx); err != nil {
		return h, err
	}
	var seed bulk.Seed
	_, missing := h.do(ctx, http.MethodGet, "/api/v1/workflows/"+bulk.HotWorkflow, "", "", jsonType)
	if missing != nil {
		if seed, err = h.seed(ctx); err != nil {
			return h, err
		}
	}
	if err := h.shut(); err != nil {
		return h, err
	}
	if h.bytes, err = fill(ctx, r, h.cfg.Database, missing != nil, seed, s.Size); err != nil {
		return h, err
	}
	if s.fill {
		h.close()
		return h, nil
	}
	return h, h.start(ctx)
}

func fill(ctx context.Context, r *measure.Report, at string, empty bool, seed bulk.Seed, size bulk.Size) (bytes int64, err error) {
	db, err := store.Open(ctx, at, store.Options{})
	if err != nil {
		return 0, err
	}
	defer db.Close() //nolint:errcheck // the server opens it again
	if empty {
		r.Say("%d lanes and %d runs", size.Lanes, size.Runs)
		begun := time.Now()
		if err := bulk.Fill(ctx, db, seed, size); err != nil {
			return 0, err
		}
		r.Say("made in %s", time.Since(begun).Round(time.Second))
	}
	s, err := db.Storage(ctx)
	return s.Bytes, err
}

func (h *house) start(ctx context.Context) error {
	ctx, h.stop = context.WithCancel(ctx)
	h.ended = make(chan error, 1)
	ready, begun := make(chan server.Started, 1), time.Now()
	var tokenPath string
	go func() { h.ended <- server.Run(ctx, h.cfg, func(s server.Started) { ready <- s }) }()
	select {
	case s := <-ready:
		h.at, tokenPath, h.started = s.URL, s.AdminTokenPath, time.Since(begun)
	case err := <-h.ended:
		h.stop = nil
		return errors.Join(errors.New("the server ended"), err)
	}
	text, err := os.ReadFile(tokenPath)
	if err != nil {
		return err
	}
	h.token = strings.TrimSpace(string(text))
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	h.client = &http.Client{Jar: jar}
	_, err = h.do(ctx, http.MethodPost, "/signin", "application/x-www-form-urlencoded", url.Values{"token": {h.token}}.Encode(), "text/html")
	return err
}

func (h *house) shut() error {
	if h.stop == nil {
		return nil
	}
	h.stop()
	h.stop = nil
	return <-h.ended
}

func (h *house) close() {
	_ = h.shut()
	for _, clean := range h.clean {
		clean()
	}
}

// seed makes what is multiplied.
func (h *house) seed(ctx context.Context) (seed bulk.Seed, err error) {
	put, err := json.Marshal(map[string]any{"script": workflow, "filename": "seed.workflow.js"})
	if err != nil {
		return seed, err
	}
	const kind = jsonType
	if _, err := h.do(ctx, http.MethodPut, "/api/v1/workflows/seed", kind, string(put), kind); err != nil {
		return seed, err
	}
	if _, err := h.do(ctx, http.MethodPut, "/api/v1/sources/seed", kind, source, kind); err != nil {
		return seed, err
	}
	answer, err := h.do(ctx, http.MethodPost, "/api/v1/schedules", kind, schedule, kind)
	if err != nil {
		return seed, err
	}
	var made struct {
		ID    string `json:"id"`
		Owner string `json:"ownerUserId"`
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		return seed, err
	}
	return bulk.Seed{Workflow: "seed", Source: "seed", Schedule: made.ID, Owner: made.Owner, Other: made.Owner}, nil
}

func (h *house) do(ctx context.Context, method, path, sends, body, takes string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.at+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if sends != "" {
		req.Header.Set("Content-Type", sends)
	}
	req.Header.Set("Accept", takes)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if takes != "text/html" {
		req.Header.Set("Authorization", "Bearer "+h.token)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s %.300s", method, path, resp.Status, answer)
	}
	return answer, err
}

// takes is the type of what an address answers.
func takes(path string) string {
	if strings.HasPrefix(path, "/api/") || path == "/metrics" {
		return jsonType
	}
	return "text/html"
}

// repeat asks for an address again and again, and tells how long each answer
// took, and the processor time of one.
func (h *house) repeat(ctx context.Context, path string, p plan) (took []time.Duration, used time.Duration, err error) {
	if _, err := h.do(ctx, http.MethodGet, path, "", "", takes(path)); err != nil { // fills the caches
		return nil, 0, err
	}
	begun, before := time.Now(), measure.ProcessorTime()
	for len(took) < p.times && time.Since(begun) < p.most {
		at := time.Now()
		if _, err := h.do(ctx, http.MethodGet, path, "", "", takes(path)); err != nil {
			return nil, 0, err
		}
		took = append(took, time.Since(at))
	}
	return took, (measure.ProcessorTime() - before) / time.Duration(len(took)), nil
}
