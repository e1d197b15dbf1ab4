package task

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/pgtest/proxy"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

func newClient(t *testing.T, allow ...string) *outbound.Client {
	t.Helper()
	prefixes, err := outbound.ParsePrefixes(allow)
	if err != nil {
		t.Fatal(err)
	}
	c, err := outbound.New(outbound.Config{AllowPrivate: prefixes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// outcome runs jobs of the task http in a real queue and tells what became of
// the first: its row's state (-1 when it is gone), error, and time to wait.
func outcome(t *testing.T, c *outbound.Client, payload string) (state int, lastError string, wait time.Duration) {
	t.Helper()
	return outcomeOn(t, "sqlite:"+t.TempDir()+"/pawl.db", c, payload)
}

func outcomeOn(t *testing.T, url string, c *outbound.Client, payload string) (state int, lastError string, wait time.Duration) {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan queue.Event, 16)
	q, err := queue.New(queue.Config{
		DB: db, Node: store.Node{ID: "n", Share: true}, Workers: 1, Tasks: map[string]queue.Task{"http": HTTP(c)},
		Observe: func(e queue.Event) {
			if e.What != "enqueued" && e.What != "started" {
				ended <- e
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	if _, err := q.Enqueue(ctx, store.JobSpec{Task: "http", Payload: json.RawMessage(payload)}); err != nil {
		t.Fatal(err)
	}
	<-ended
	stop()
	<-done
	defer db.Close() //nolint:errcheck // only read from here on
	state = -1
	err = db.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, `select state, coalesce(last_error, ''), run_at - created_at from jobs`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var ms int64
			if err := rows.Scan(&state, &lastError, &ms); err != nil {
				return err
			}
			wait = time.Duration(ms) * time.Millisecond
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return state, lastError, wait
}

func TestRequestArrivesAsAskedFor(t *testing.T) {
	var got *http.Request
	var body string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
	}))
	defer s.Close()
	state, msg, _ := outcome(t, newClient(t, "127.0.0.1"), `{"url":"`+s.URL+`/a?b=c","method":"put","headers":{"X-Trace":"7"},"body":{"n":1}}`)
	if state != -1 {
		t.Fatalf("state %d: %s", state, msg)
	}
	if got.Method != "PUT" || got.URL.String() != "/a?b=c" || body != `{"n":1}` || got.Header.Get("X-Trace") != "7" ||
		got.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(got.Header.Get("Idempotency-Key"), "job-") {
		t.Errorf("%s %s %q %v", got.Method, got.URL, body, got.Header)
	}
}

func TestAnswersDecideWhatHappensNext(t *testing.T) {
	const gone, waits, failed = -1, 0, 1
	for status, want := range map[int]int{200: gone, 204: gone, 400: failed, 401: failed, 404: failed, 302: failed, 408: waits, 425: waits, 429: waits, 500: waits, 503: waits} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if state, msg, _ := outcome(t, newClient(t, "127.0.0.1"), `{"url":"`+s.URL+`"}`); state != want {
			t.Errorf("%d: state %d, want %d (%s)", status, state, want, msg)
		}
		s.Close()
	}
}

// A server that answers with what no database can store gets its job ended as
// any other one does.
func TestHostileStatusLinesAreStored(t *testing.T) {
	for line, want := range map[string]string{
		"HTTP/1.1 400 Ung\xfcltig":         "answered 400 Ung\uFFFDltig",
		"HTTP/1.1 400 a\x00b":              "answered 400 a\uFFFDb",
		"HTTP/1.1 404 \xed\xa0\x80\x1b[2J": "answered 404 \uFFFD",
	} {
		pgtest.Both(t, func(t *testing.T, url string) {
			state, msg, _ := outcomeOn(t, url, newClient(t, "127.0.0.1"), `{"url":"http://`+answering(t, line)+`"}`)
			if state != 1 || !strings.Contains(msg, want) {
				t.Errorf("%q: state %d, %q", line, state, msg)
			}
		})
	}
}

// answering is a server that answers every request with one line.
func answering(t *testing.T, line string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close() //nolint:errcheck // a test
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, line+"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A lane that turned out to be another node's gets nothing from this one any
// more: neither a request that was about to be made, nor one that was about to be
// written because its connection took long.
func TestNothingIsSentForALaneThatIsLost(t *testing.T) {
	t.Run("before", func(t *testing.T) { testNothingIsSent(t, false, "POST", "1") })
	t.Run("before a read", func(t *testing.T) { testNothingIsSent(t, false, "GET", "") })
	t.Run("while it connects", func(t *testing.T) { testNothingIsSent(t, true, "POST", "1") })
}

func testNothingIsSent(t *testing.T, connecting bool, method, content string) {
	url := pgtest.URL(t)
	p := proxy.New(t, url)
	asked := make(chan string, 9)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- string(body)
	}))
	defer s.Close()
	db, err := store.Open(t.Context(), p.URL(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a test
	var job *queue.Job
	loseLane := func() {
		p.Stall()
		for job.StillOwned() == nil { // until the lease may be over
			runtime.Gosched()
		}
	}
	result := make(chan error, 9)
	client, err := outbound.New(outbound.Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if connecting && len(result) == 0 {
			loseLane()
		}
		return conn, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	send := HTTP(client).Run
	q, err := queue.New(queue.Config{DB: db, Node: store.Node{ID: "n", Share: true}, Workers: 1, Lease: time.Second, Tasks: map[string]queue.Task{
		"http": {Run: func(ctx context.Context, j *queue.Job) error {
			if len(result) > 0 {
				return send(ctx, j)
			}
			if job = j; !connecting {
				loseLane()
			}
			err := send(ctx, j)
			result <- err
			p.Resume()
			return err
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	payload := json.RawMessage(`{"url":"` + s.URL + `","method":"` + method + `"}`)
	if content != "" {
		payload = json.RawMessage(`{"url":"` + s.URL + `","method":"` + method + `","body":` + content + `}`)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	if _, err := q.Enqueue(ctx, store.JobSpec{Task: "http", MaxAttempts: 1, Payload: payload}); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, queue.ErrLeaseLost) || len(asked) != 0 {
		t.Errorf("it gave %v, and %d requests", err, len(asked))
	}
	if body := <-asked; body != content { // by the same node, whose lease turned out to hold
		t.Errorf("sent %q", body)
	}
	stop()
	<-done
}

func TestRetryAfterIsHonouredButClamped(t *testing.T) {
	for header, want := range map[string]time.Duration{"120": 2 * time.Minute, "999999": time.Hour} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		if _, _, wait := outcome(t, newClient(t, "127.0.0.1"), `{"url":"`+s.URL+`"}`); wait < want-time.Second || wait > want+10*time.Second {
			t.Errorf("Retry-After %s: waits %v, want %v", header, wait, want)
		}
		s.Close()
	}
}

func TestPrivateAddressFailsAtOnceWithAHint(t *testing.T) {
	state, msg, _ := outcome(t, newClient(t), `{"url":"http://127.0.0.1:9/"}`)
	if state != 1 || !strings.Contains(msg, "--allow-private") {
		t.Errorf("state %d: %s", state, msg)
	}
}

func TestBadPayloadsAreRefusedWithTheirPlace(t *testing.T) {
	check := HTTP(newClient(t)).Check
	for payload, want := range map[string]string{
		`{}`:                                    "/url",
		`{"url":1}`:                             "/url",
		`{"url":"ftp://x/y"}`:                   "/url",
		`{"url":"http://"}`:                     "/url",
		`{"url":"http://user:pw@example.com/"}`: "/url",
		`{"url":"http://example.com","method":"TRACE"}`:                "/method",
		`{"url":"http://example.com","headers":{"Authorization":"x"}}`: "/headers/Authorization",
		`{"url":"http://example.com","headers":{"cookie":"x"}}`:        "/headers/cookie",
		`{"url":"http://example.com","headers":{"Host":"x"}}`:          "/headers/Host",
		`{"url":"http://example.com","headers":{"a b":"x"}}`:           "/headers/a b",
		`{"url":"http://example.com","headers":{"A":"x\r\nB: y"}}`:     "/headers/A",
		`{"url":"http://example.com","timeout":"1h"}`:                  "/timeout",
		`{"url":"http://example.com","timeout":"soon"}`:                "/timeout",
		`{"url":"http://example.com","retries":3}`:                     "/retries",
		`[]`:   "",
		`null`: "",
	} {
		err := check(json.RawMessage(payload))
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != pawl.CodeInvalid || len(e.Fields) == 0 || e.Fields[0].Pointer != want || e.Hint == "" {
			t.Errorf("%s: %+v, want a fault at %q", payload, err, want)
		}
	}
	if err := check(json.RawMessage(`{"url":"https://example.com/x","method":"POST","headers":{"Accept":"*/*"},"body":[1],"timeout":"10s"}`)); err != nil {
		t.Errorf("a good payload: %v", err)
	}
}
