package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// up is a server that runs.
type up struct {
	t     *testing.T
	url   string
	admin string
}

// start runs a server until the test ends.
func start(t *testing.T, database string, change func(*Config)) *up {
	t.Helper()
	cfg := Default()
	cfg.Addr, cfg.Database, cfg.Data, cfg.Logs = "127.0.0.1:0", database, filepath.Join(t.TempDir(), "data"), io.Discard
	change(&cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan Started, 1), make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, func(s Started) { ready <- s }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case s := <-ready:
		text, err := readToken(s.AdminTokenPath)
		if err != nil {
			t.Fatal(err)
		}
		return &up{t, s.URL, text}
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("it does not start")
	}
	return nil
}

// ask sends a request; headers come in pairs, and Host is the name in the
// address.
func (u *up) ask(token, method, path, body string, headers ...string) (int, string) {
	u.t.Helper()
	r, err := http.NewRequestWithContext(u.t.Context(), method, u.url+path, strings.NewReader(body))
	if err != nil {
		u.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r.Host = r.Header.Get("Host")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		u.t.Fatal(err)
	}
	var p struct{ Code string }
	_ = json.Unmarshal(raw, &p)
	if p.Code == "" {
		p.Code = string(raw)
	}
	return resp.StatusCode, p.Code
}

// token makes one through the API, and a user of that name with it.
func (u *up) token(user string, scopes ...string) (text, id string) {
	u.t.Helper()
	body, err := json.Marshal(map[string]any{"name": "t", "user": user, "scopes": scopes})
	if err != nil {
		u.t.Fatal(err)
	}
	status, raw := u.ask(u.admin, "POST", "/api/v1/tokens", string(body))
	var made struct{ ID, Token string }
	if err := json.Unmarshal([]byte(raw), &made); status != http.StatusCreated || err != nil {
		u.t.Fatalf("%d %s", status, raw)
	}
	return made.Token, made.ID
}

// The service that runs graphs is for its own token and for those with the
// scope graphs:execute, which only admins have (P1 12).
func TestGraphsAreRunByThoseWhoMay(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		u := start(t, database, func(*Config) {})
		const path, body = "/api/internal/graphs/x:poet/runs", `{"executionGrantId":"0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e","input":{}}`
		service, serviceID := u.token("service", "graphs:execute")
		operator, _ := u.token("olga", "write")
		narrow, _ := u.token("nora", "schedules:admin")
		for name, c := range map[string]struct {
			token string
			want  int
		}{
			"nobody": {"", 401}, "unknown": {userstore.NewTokenText(), 401}, "operator": {operator, 403}, "admin of schedules": {narrow, 403},
			"service": {service, 0}, "admin": {u.admin, 0},
		} {
			status, code := u.ask(c.token, "POST", path, body, "Idempotency-Key", "k-"+strings.ReplaceAll(name, " ", "-"))
			if inside := status == 403 && strings.HasPrefix(code, "grant_"); inside != (c.want == 0) || !inside && status != c.want {
				t.Errorf("%s: %d %s", name, status, code)
			}
		}
		if status, raw := u.ask(u.admin, "DELETE", "/api/v1/tokens/"+serviceID, ""); status != http.StatusNoContent {
			t.Fatalf("%d %s", status, raw)
		}
		if status, _ := u.ask(service, "POST", path, body, "Idempotency-Key", "k"); status != 401 {
			t.Errorf("a revoked token: %d", status)
		}
	})
}

// A connection whose policy denies exec is not written by sources either,
// whoever applies them (P1 12).
func TestSourcesHonourThePolicyOfConnections(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		dir := t.TempDir()
		text := ""
		for name, policy := range map[string]string{"books": "deny", "sheets": "allow"} {
			if err := os.WriteFile(filepath.Join(dir, name+".db"), nil, 0o600); err != nil { // which is an empty database
				t.Fatal(err)
			}
			text += "---\nkind: connection\nname: " + name + "\ntype: sql\nurl: sqlite:" + filepath.Join(dir, name+".db") + "\npolicy: {exec: " + policy + "}\n"
		}
		if err := os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		u := start(t, database, func(c *Config) { c.ConnectionDir = dir })
		source := func(connection string) string {
			return `{"url":"https://example.com/x","table":"x","schedule":"daily","status":"off","response":{"fields":[{"source":"a","target":"a","type":"text"}]},"write":{"connection":"` + connection + `","key":["a"]}}`
		}
		if status, code := u.ask(u.admin, "PUT", "/api/v1/sources/s", source("books")); status != 403 || code != "connection_denied" {
			t.Errorf("a connection that denies: %d %s", status, code)
		}
		if status, code := u.ask(u.admin, "PUT", "/api/v1/sources/s", source("sheets")); status != http.StatusCreated {
			t.Errorf("a connection that allows: %d %s", status, code)
		}
	})
}

// A server on this machine alone answers under its own names and those that it
// was given, and no others (DNS rebinding).
func TestServerKnowsItsNames(t *testing.T) {
	u := start(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), func(c *Config) {
		c.AllowHosts, c.PublicURL = []string{"Pawl.internal"}, "https://jobs.example.com/pawl"
	})
	for host, want := range map[string]bool{
		"127.0.0.1": true, "localhost:7295": true, "LOCALHOST": true, "a.localhost": true, "[::1]:80": true, "127.9.9.9": true, "pawl.internal": true, "pawl.internal.:80": true, "jobs.example.com": true,
		"evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "notlocalhost": false, "192.168.0.1": false, "0.0.0.0": false, "example.com": false,
	} {
		for _, path := range []string{"/healthz", "/api/v1/jobs", "/signin", "/api/internal/executions/outcome"} {
			status, code := u.ask(u.admin, "GET", path, "", "Host", host)
			if (status != http.StatusMisdirectedRequest) != want || !want && code != "host_not_allowed" {
				t.Errorf("%s at %s: %d %s", path, host, status, code)
			}
		}
	}
	if status, text := u.ask("", "GET", "/", "", "Host", "evil.example", "Accept", "text/html"); status != http.StatusMisdirectedRequest || !strings.Contains(text, "--allow-host") {
		t.Errorf("a page: %d %s", status, text)
	}
}
