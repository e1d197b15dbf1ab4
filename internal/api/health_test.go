package api

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
)

func TestHealthAndReadiness(t *testing.T) {
	both(t, func(r *rig) {
		if p := r.as("", "GET", "/healthz", nil).want(http.StatusOK); string(p.body) != `{"status":"ok"}`+"\n" {
			t.Errorf("health %s", p.body)
		}
		if p := r.as("", "GET", "/readyz", nil).want(http.StatusOK); string(p.body) != `{"status":"ok","checks":{"database":"ok","queue":"ok","server":"ok"}}`+"\n" {
			t.Errorf("ready %s", p.body)
		}
		for err, word := range map[error]string{
			&pawl.Error{Code: pawl.CodeUnavailable, Msg: "definitions are being read", Err: errors.New("hunter2")}: "definitions are being read",
			errors.New("password=hunter2"): "unavailable",
			fmt.Errorf("starting"):         "starting",
		} {
			r.ready = err
			p := r.as("", "GET", "/readyz", nil).want(http.StatusServiceUnavailable)
			if want := fmt.Sprintf(`"server":%q`, word); !strings.Contains(string(p.body), want) || strings.Contains(string(p.body), "hunter2") || !strings.Contains(string(p.body), `"status":"unavailable"`) {
				t.Errorf("not ready: %s", p.body)
			}
		}
		r.as("", "GET", "/healthz", nil).want(http.StatusOK)
	})
}

// A PostgreSQL that goes away makes requests fail politely, and comes back
// without a restart of ours.
func TestOutageOfTheDatabaseIsTold(t *testing.T) {
	server := pgtest.NewServer(t)
	r := newRig(t, server.URL())
	server.Stop()
	p := r.as("", "GET", "/readyz", nil).want(http.StatusServiceUnavailable)
	if body := string(p.body); !strings.Contains(body, `"database":"the database cannot be reached"`) || strings.Contains(body, "127.0.0.1") {
		t.Errorf("readiness %s", body)
	}
	told := r.do("GET", "/api/v1/jobs", nil)
	if q := told.problem(http.StatusServiceUnavailable, "unavailable"); q.Detail != "The database cannot be reached." || told.header.Get("Retry-After") == "" {
		t.Errorf("%+v", q)
	}
	if p := r.do("GET", "/metrics", nil); p.status != http.StatusServiceUnavailable {
		t.Errorf("metrics without a database that knows the token: %d", p.status)
	}
	r.as("", "GET", "/healthz", nil).want(http.StatusOK)
	server.Start()
	r.eventually("it answers again", func() bool { return r.as("", "GET", "/readyz", nil).status == http.StatusOK })
	r.do("GET", "/api/v1/jobs", nil).want(http.StatusOK)
}

func TestMetricsTellTheBacklog(t *testing.T) {
	both(t, func(r *rig) {
		text := func() string { return string(r.do("GET", "/metrics", nil).want(http.StatusOK).body) }
		if got := text(); !strings.Contains(got, "pawl_queue_oldest_pending_seconds 0\n") || !strings.Contains(got, "pawl_queue_buckets ") {
			t.Errorf("idle: %s", got)
		}
		for range 5 { // four of them keep all workers busy; the marks take a second
			r.enqueue(map[string]any{"task": "block"})
		}
		for range 4 {
			r.waitRun()
		}
		for range 3 {
			r.enqueue(map[string]any{"task": "echo"})
		}
		r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
		hour := time.Now().Add(-time.Hour)
		r.exec(`update jobs set run_at = $1 where task = 'echo' and run_at <= $2`, hour.UnixMilli(), time.Now().UnixMilli())
		r.eventually("running jobs are no backlog", func() bool {
			got := text()
			return strings.Contains(got, `pawl_queue_due{task="block"} 1`) && strings.Contains(got, `pawl_queue_due{task="echo"} 3`) &&
				strings.Contains(got, "pawl_queue_oldest_pending_seconds 360")
		})
	})
}

// The log tells of readiness when it changes, and not at every probe.
func TestReadinessIsLoggedWhenItChanges(t *testing.T) {
	var log bytes.Buffer
	a := &API{log: slog.New(slog.NewTextHandler(&log, nil))}
	away := &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the database cannot be reached"}
	for _, err := range []error{nil, nil, away, away, errors.New("x"), away, nil, nil} {
		a.tellReadiness("database", err)
	}
	for _, err := range []error{nil, &pawl.Error{Msg: "late by 30s"}, &pawl.Error{Msg: "late by 31s"}, nil} {
		a.tellReadiness("canary", err)
	}
	var got []string
	for line := range strings.Lines(log.String()) {
		_, text, _ := strings.Cut(line, "msg=")
		got = append(got, strings.TrimSpace(text))
	}
	want := []string{
		`"not ready" check=database err="the database cannot be reached"`, `"not ready" check=database err=x`, `"not ready" check=database err="the database cannot be reached"`,
		`"ready again" check=database`, `"not ready" check=canary err="late by 30s"`, `"ready again" check=canary`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
