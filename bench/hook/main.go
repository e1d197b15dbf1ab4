// Command hook measures how many signed deliveries a server takes, each on the disk
// with its effect before the sender gets its answer.
//
// usage: go run ./hook [-quick] [-pg URL] [-only SQLite|PostgreSQL] [-dir DIR] [-out FILE] [-cpuprofile FILE]
//
// Without -pg (or PAWL_TEST_POSTGRES) only SQLite is measured.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/server"
)

const note = "Deliveries of 1 KiB signed as GitHub does, over HTTP/1.1 on loopback, to a server that is in the same process as the senders. " +
	"An event goes to a workflow whose runs are not started, a job to the queue, which does not run it: the server has the role api only. Filtered ones are kept without an effect. " +
	"Processor is what server and senders use for a delivery. The goal is 2,000 deliveries a second on SQLite."

func main() {
	script.WorkerMain() // scripts run in processes of this same program
	measure.Main("Hooks", "bench-hook", all, note)
}

const secret = "It's a Secret to Everybody"

const definitions = `kind: hook
name: event
verify: {scheme: github, secret: "${PAWL_BENCH_SECRET}"}
publish: {workflow: triage, topic: issue.opened}
---
kind: hook
name: job
verify: {scheme: github, secret: "${PAWL_BENCH_SECRET}"}
job: {task: log}
---
kind: hook
name: filtered
verify: {scheme: github, secret: "${PAWL_BENCH_SECRET}"}
when: {body:action: closed}
job: {task: log}
`

const workflow = `export default { name: "triage", topics: { "issue.opened": {} },
	consumers: { act: { subscribe: ["issue.opened"], prepare: async () => ({ reservations: [] }), mutate: async () => {} } } };`

func all(ctx context.Context, r *measure.Report, p measure.Place, quick bool) error {
	most := 10 * time.Second
	if quick {
		most = time.Second
	}
	at, stop, err := start(ctx, p)
	if err != nil {
		return err
	}
	defer stop()
	for _, hook := range []string{"event", "job", "filtered"} {
		for _, senders := range []int{1, 16, 128} {
			r.Say("%s, %d senders", hook, senders)
			if err := send(ctx, r, at+"/hooks/"+hook, hook, senders, most); err != nil {
				return err
			}
		}
	}
	return nil
}

// start makes a server with the hooks.
func start(ctx context.Context, p measure.Place) (at string, stop func(), err error) {
	cfg := server.Default()
	cfg.Addr, cfg.Roles, cfg.Logs, cfg.LogLevel = "127.0.0.1:0", []string{server.RoleAPI}, io.Discard, "error"
	database, clean, err := p.Database(ctx)
	if err != nil {
		return "", nil, err
	}
	folder, cleanFolder, err := p.Folder()
	if err != nil {
		return "", nil, err
	}
	cfg.Database, cfg.Data, cfg.Dirs = database, folder, []string{folder}
	for name, text := range map[string]string{"hooks.yaml": definitions, "triage.workflow.js": workflow} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			return "", nil, err
		}
	}
	if err := os.Setenv("PAWL_BENCH_SECRET", secret); err != nil {
		return "", nil, err
	}
	running, cancel := context.WithCancel(ctx)
	ready, ended := make(chan server.Started, 1), make(chan error, 1)
	go func() { ended <- server.Run(running, cfg, func(s server.Started) { ready <- s }) }()
	stop = func() { cancel(); <-ended; clean(); cleanFolder() }
	select {
	case s := <-ready:
		return s.HookURL, stop, nil
	case err := <-ended:
		cancel()
		return "", nil, fmt.Errorf("the server ended: %w", err)
	}
}

// send delivers for a while.
func send(ctx context.Context, r *measure.Report, at, hook string, senders int, most time.Duration) error {
	body := `{"action":"opened","issue":{"text":"` + strings.Repeat("x", 980) + `"}}`
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, body)
	signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	defer client.CloseIdleConnections()
	var number atomic.Int64
	took := make([][]time.Duration, senders)
	failed := make(chan error, senders)
	begun, used := time.Now(), measure.ProcessorTime()
	var wg sync.WaitGroup
	for n := range senders {
		wg.Go(func() {
			for time.Since(begun) < most {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(body))
				if err != nil {
					failed <- err
					return
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("X-Hub-Signature-256", signature)
				req.Header.Set("X-GitHub-Delivery", fmt.Sprintf("%d-%d", senders, number.Add(1)))
				sent := time.Now()
				resp, err := client.Do(req)
				if err != nil {
					failed <- err
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusAccepted {
					failed <- fmt.Errorf("a delivery was answered with %d", resp.StatusCode)
					return
				}
				took[n] = append(took[n], time.Since(sent))
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	elapsed, used := time.Since(begun), measure.ProcessorTime()-used
	var whole []time.Duration
	for _, list := range took {
		whole = append(whole, list...)
	}
	r.Line(fmt.Sprintf("%s, %d senders", hook, senders), "%.0f/s, p50 %.1f ms, p99 %.1f ms, processor %.2f ms", float64(len(whole))/elapsed.Seconds(),
		measure.MS(measure.At(whole, 0.5)), measure.MS(measure.At(whole, 0.99)), measure.MS(used)/float64(max(1, len(whole))))
	return nil
}
