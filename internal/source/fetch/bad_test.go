package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// Answers that are not what they should be are errors with a code, and never
// pages.
func TestBadAnswersAreErrors(t *testing.T) {
	tests := []struct {
		name, body string
		code       string
		class      pawl.Class
		text       string // within the message
	}{
		{"a page for people", "<!DOCTYPE html><html><body>Sign in</body>", CodeNotJSON, pawl.ClassLogic, "<!DOCTYPE html><html><body>Sign in"},
		{"plain text", "Rate limit exceeded", CodeNotJSON, pawl.ClassLogic, "Rate limit exceeded"},
		{"nothing", "", CodeNotJSON, pawl.ClassLogic, "empty"},
		{"space", "  \n ", CodeNotJSON, pawl.ClassLogic, "empty"},
		{"a long page", "<" + strings.Repeat("x", 900), CodeNotJSON, pawl.ClassLogic, strings.Repeat("x", 79) + "..."},
		{"a 200 that is an error", `{"error":{"code":17,"message":"no such symbol"},"data":[{"id":1}]}`, CodeErrorInBody, pawl.ClassLogic, "17"},
		{"an error without data", `{"error":{"code":"E1"}}`, CodeErrorInBody, pawl.ClassLogic, "E1"},
		{"no data", `{"status":"ok","items":[]}`, CodeBadPath, pawl.ClassLogic, `"status", "items"`},
		{"null for data", `{"data":null}`, CodeBadPath, pawl.ClassLogic, `"data"`},
		{"text for data", `{"data":"none"}`, CodeBadPath, pawl.ClassLogic, "neither an array nor an object"},
		{"cut off in a row", `{"data":[{"id":1},{"id":`, CodeTruncated, pawl.ClassTransient, "too early"},
		{"cut off after the rows", `{"data":[{"id":1}]`, CodeTruncated, pawl.ClassTransient, "too early"},
		{"cut off in a string", `{"data":"no`, CodeTruncated, pawl.ClassTransient, "too early"},
		{"broken in the middle", `{"data":[{"id":1},{"id":1 2}]}`, CodeNotJSON, pawl.ClassLogic, "byte 26"},
		{"two documents", `{"data":[]}` + "\n" + `{"data":[]}`, CodeNotJSON, pawl.ClassLogic, "more than one"},
		{"two sets of rows", `{"data":[{"id":1}],"data":[{"id":2}]}`, CodeBadPath, pawl.ClassLogic, "twice"},
		{"too deep", `{"data":[` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `]}`, CodeNotJSON, pawl.ClassLogic, "not valid JSON"},
		{"too deep, and not wanted", `{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `,"data":[]}`, CodeNotJSON, pawl.ClassLogic, "not valid JSON"},
		{"a row of 5 MiB", `{"data":[{"id":1,"x":"` + strings.Repeat("x", 5<<20) + `"}]}`, CodeTooLarge, pawl.ClassLogic, "4 MiB"},
		{"text of 5 MiB that is not wanted", `{"x":"` + strings.Repeat("x", 5<<20) + `","data":[]}`, CodeTooLarge, pawl.ClassLogic, "4 MiB"},
		{"more than the limit", `{"data":[` + strings.Repeat(`{"id":1},`, 1_000_000) + `{}]}`, CodeTooLarge, pawl.ClassLogic, "8388608"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := define(serveText(t, test.body).URL)
			d.Response.ErrorWhen = &spec.ErrorWhen{Path: "error.code"}
			page, err := next(t, newFetcher(t, nil), Ask{Definition: d}, Position{})
			e := mustFail(t, err, test.code)
			if page != nil || e.Class != test.class || !strings.Contains(e.Msg, test.text) || !strings.Contains(e.Msg, "127.0.0.1") {
				t.Errorf("got page %v, class %s, message %q", page, e.Class, e.Msg)
			}
			if general, ok := errors.AsType[*pawl.Error](err); !ok || general.Reason != test.code {
				t.Errorf("as an error of Pawl it is %+v", general)
			}
		})
	}
}

func TestErrorWhenKnowsNothingFromSomething(t *testing.T) {
	tests := []struct {
		value, equals string
		fails         bool
	}{
		{`null`, ``, false}, {`false`, ``, false}, {`""`, ``, false}, {`0`, ``, false}, {`0.0`, ``, false},
		{`[]`, ``, false}, {`{ }`, ``, false}, {`true`, ``, true}, {`"x"`, ``, true}, {`7`, ``, true}, {`["x"]`, ``, true},
		{`"fail"`, `"fail"`, true}, {`"ok"`, `"fail"`, false}, {`1.0`, `1`, true}, {`false`, `false`, true}, {`null`, `"x"`, false},
	}
	for _, test := range tests {
		d := define(serveText(t, `{"data":[],"state":`+test.value+`}`).URL)
		d.Response.ErrorWhen = &spec.ErrorWhen{Path: "state", Equals: json.RawMessage(test.equals)}
		_, err := next(t, newFetcher(t, nil), Ask{Definition: d}, Position{})
		if (err != nil) != test.fails {
			t.Errorf("%s (equals %q): got %v", test.value, test.equals, err)
		}
		if err != nil {
			wantCode(t, err, CodeErrorInBody)
		}
	}
}

// Statuses decide the class, and a delay that is asked for is kept. X-41
func TestStatusesAreJudged(t *testing.T) {
	tests := []struct {
		status int
		class  pawl.Class
		code   string
	}{
		{400, pawl.ClassLogic, CodeStatus}, {401, pawl.ClassAuth, CodeUnauthorized}, {403, pawl.ClassPermission, CodeStatus},
		{404, pawl.ClassLogic, CodeStatus}, {408, pawl.ClassTransient, CodeStatus}, {425, pawl.ClassTransient, CodeStatus},
		{429, pawl.ClassTransient, CodeLimited}, {500, pawl.ClassTransient, CodeStatus}, {503, pawl.ClassTransient, CodeStatus},
		{304, pawl.ClassLogic, CodeStatus},
	}
	for _, test := range tests {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(test.status)
			if test.status != http.StatusNotModified {
				_, _ = fmt.Fprintf(w, `{"message":"not with %s, nor %s"}`, r.URL.Query().Get("token"), r.Header.Get("X-Own"))
			}
		})
		d := define(server.URL)
		d.Params = []spec.Pair{{Name: "token", Value: "s3cr3t-in-query"}}
		d.Headers = []spec.Pair{{Name: "X-Own", Value: "s3cr3t-in-header"}}
		_, err := next(t, newFetcher(t, nil), Ask{Definition: d}, Position{})
		e := mustFail(t, err, test.code)
		if e.Class != test.class || e.RetryAfter.Seconds() != 90 || !strings.Contains(e.Msg, fmt.Sprint(test.status)) {
			t.Errorf("%d: class %s, after %s: %s", test.status, e.Class, e.RetryAfter, e.Msg)
		}
		if strings.Contains(e.Msg+e.Hint, "s3cr3t") {
			t.Errorf("the message tells a secret: %s", e.Msg)
		}
	}
}

func TestNoContentIsAnEmptyPage(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if page := one(t, define(server.URL)); page.Count != 0 || !page.Last || page.Status != 204 {
		t.Errorf("got %+v", page)
	}
}

// A redirect to a private address is refused by the client.
func TestRedirectsToPrivateAddressesAreRefused(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://10.1.2.3/latest/meta-data?key=s3cr3t", http.StatusFound)
	})
	_, err := next(t, newFetcher(t, nil), Ask{Definition: define(server.URL)}, Position{})
	e := mustFail(t, err, CodeRedirect)
	if e.Class != pawl.ClassPermission || strings.Contains(e.Msg, "s3cr3t") {
		t.Errorf("class %s: %s", e.Class, e.Msg)
	}
}

// A small answer that unpacks to a large one is stopped at the limit.
func TestCompressedBombsAreStopped(t *testing.T) {
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	_, _ = io.WriteString(zip, `{"data":[{"id":1}],"x":[`)
	for range 12 { // more than the limit, and little when compressed
		_, _ = zip.Write(bytes.Repeat([]byte("0,"), 512<<10))
	}
	_ = zip.Close()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	if bomb.Len() > 1<<20 {
		t.Fatalf("the bomb has %d bytes", bomb.Len())
	}
	_, err := next(t, newFetcher(t, nil), Ask{Definition: define(server.URL)}, Position{})
	wantCode(t, err, CodeTooLarge)
}

func TestAnnouncedSizeOverTheLimitIsNotRead(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "99999999999")
		_, _ = io.WriteString(w, `{"data":[`)
	})
	_, err := next(t, newFetcher(t, nil), Ask{Definition: define(server.URL)}, Position{})
	wantCode(t, err, CodeTooLarge)
}

// A body that breaks off before the announced length is transient.
func TestConnectionLostInTheBody(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"data":[{"id":1},`)
	})
	_, err := next(t, newFetcher(t, nil), Ask{Definition: define(server.URL)}, Position{})
	if e := mustFail(t, err, CodeTruncated); e.Class != pawl.ClassTransient {
		t.Errorf("class %s", e.Class)
	}
}

// endless sends rows until the client goes away. It tells when it has begun and
// when it is left.
func endless(t *testing.T) (url string, begun, left <-chan struct{}) {
	t.Helper()
	start, end := make(chan struct{}), make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(end)
		_, _ = io.WriteString(w, `{"data":[{"id":1}`)
		_ = http.NewResponseController(w).Flush()
		close(start)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat(`,{"id":1}`, 100)); err != nil {
				return
			}
		}
	})
	return server.URL, start, end
}

// An answer without end is stopped by its limit.
func TestEndlessBodyEndsAtTheLimit(t *testing.T) {
	url, _, left := endless(t)
	_, err := next(t, newFetcher(t, nil), Ask{Definition: define(url)}, Position{})
	wantCode(t, err, CodeTooLarge)
	<-left
}

// Cancelling aborts the request in progress, and running out of time is a
// transient failure. The time is that of the caller's context. B-34 X-40 X-45
func TestCancellationAbortsTheRequest(t *testing.T) {
	for cause, code := range map[error]string{
		errors.New("enough"):     CodeCancelled,
		context.DeadlineExceeded: CodeTimeout,
	} {
		t.Run(code, func(t *testing.T) {
			url, begun, left := endless(t)
			d := define(url)
			d.Response.MaxBytes = 1 << 40
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-begun
				cancel(cause)
			}()
			_, err := newFetcher(t, nil).Next(ctx, Ask{Definition: d, Spool: t.TempDir()}, Position{})
			e := mustFail(t, err, code)
			if e.Class != pawl.ClassTransient || !errors.Is(e, cause) {
				t.Errorf("class %s, cause %v", e.Class, e.Err)
			}
			<-left
		})
	}
}

// Between pages nothing is asked for once the context has ended. B-36
func TestNoPageIsAskedForAfterCancellation(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was called") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newFetcher(t, nil).Next(ctx, Ask{Definition: define(server.URL)}, Position{Page: 3})
	wantCode(t, err, CodeCancelled)
}
