package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// follow reads the lines of a stream until the test ends.
func follow(t *testing.T, c *http.Client, address, token string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req) //nolint:bodyclose // closed when the test ends
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("follow %s: %v, %v", address, resp, err)
	}
	lines := make(chan string, 10_000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			select {
			case lines <- s.Text():
			default: // more than anybody looks at
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done; _ = resp.Body.Close() })
	return lines
}

// Who follows the stream of one node, or has a page of it open, hears what happens
// on the others.
func TestStreamsAndPagesTellOfAllNodes(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	a, b := serve(t, database), serve(t, database)

	lines := follow(t, http.DefaultClient, a.url+"/api/v1/stream?kind=job", a.token())
	a.eventually("the stream of one node tells of a job that the other took", func() bool {
		j := b.enqueue(map[string]any{"task": "log", "payload": map[string]any{"message": "hello"}})
		for range 20 {
			select {
			case line := <-lines:
				if strings.HasPrefix(line, "data: ") && strings.Contains(line, `"enqueued"`) && strings.Contains(line, j.ID) {
					return true
				}
			default:
				a.pause(20 * time.Millisecond)
			}
		}
		return false
	})

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path string, form url.Values) (status int, text string) {
		req, err := http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		page, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(page)
	}
	if status, page := ask("POST", "/signin", url.Values{"token": {a.token()}}); status != http.StatusSeeOther {
		t.Fatalf("sign in: %d %s", status, page)
	}
	visit := func() string {
		_, page := ask("GET", "/", nil)
		told := regexp.MustCompile(`since=(\d+)`).FindStringSubmatch(page)
		if told == nil {
			t.Fatalf("the page does not say how much was told: %s", page)
		}
		return told[1]
	}
	before := visit()
	follow(t, browser, a.url+"/live", "")
	n := 0
	a.eventually("an open page of one node learns of a change on the other", func() bool {
		n++
		made := map[string]any{"name": fmt.Sprintf("yearly-%d", n), "cron": "0 9 1 1 *", "timezone": "UTC", "run": map[string]any{"url": "http://127.0.0.1:1/"}}
		if status := b.call("POST", "/api/v1/schedules", made, nil); status != http.StatusCreated {
			t.Fatalf("make a schedule: %d", status)
		}
		for range 10 {
			if visit() != before {
				return true
			}
			a.pause(20 * time.Millisecond)
		}
		return false
	})
}
