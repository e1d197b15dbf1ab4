package httptool

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

// raw takes the connection over and leaves it to act.
func raw(act func(conn net.Conn, w *bufio.ReadWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer func() { _ = conn.Close() }()
		act(conn, buffer)
	}
}

// says sends these bytes and ends the connection.
func says(text string) http.HandlerFunc {
	return raw(func(_ net.Conn, w *bufio.ReadWriter) {
		_, _ = w.WriteString(text)
		_ = w.Flush()
	})
}

// hangs sends these bytes and nothing more until the caller gives up.
func hangs(text string) http.HandlerFunc {
	return raw(func(conn net.Conn, w *bufio.ReadWriter) {
		_, _ = w.WriteString(text)
		_ = w.Flush()
		_, _ = io.Copy(io.Discard, conn)
	})
}

// echoes answers with a status, and with the credentials it was sent wherever
// they fit.
func echoes(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		credentials := r.Header.Get("Authorization")
		w.Header().Set("X-Request-Id", credentials)
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"said":%q}`, credentials)
	}
}

// outcome is what a call comes to. An empty class is a result.
type outcome struct {
	class      pawl.Class
	code       string
	notApplied bool
}

// The classes of the table, by what they say about a mutation.
func ok() outcome                              { return outcome{} }
func no(class pawl.Class, code string) outcome { return outcome{class, code, true} }
func unknown(code string) outcome              { return outcome{pawl.ClassIndeterminate, code, false} }

// surface, Connection; context 3.8: the table of
// answers. A mutation is sent at most once, whatever the answer.
func TestAnswersMeanWhatTheTableSays(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	tests := map[string]struct {
		handle         http.HandlerFunc
		read, mutation outcome
		wait           time.Duration // Retry-After, for whom the class is transient
	}{
		"200": {handle: echoes(200), read: ok(), mutation: ok()},
		"201": {handle: echoes(201), read: ok(), mutation: ok()},
		"204": {handle: reply(204, "", ""), read: ok(), mutation: ok()},

		"300":               {handle: echoes(300), read: no(pawl.ClassLogic, "redirect"), mutation: unknown("redirect")},
		"302, nowhere":      {handle: echoes(302), read: no(pawl.ClassLogic, "redirect"), mutation: unknown("redirect")},
		"304":               {handle: reply(304, "", ""), read: no(pawl.ClassLogic, "redirect"), mutation: unknown("redirect")},
		"307, nowhere":      {handle: echoes(307), read: no(pawl.ClassLogic, "redirect"), mutation: no(pawl.ClassLogic, "redirect")},
		"302, private":      {handle: echoes(302, "Location", "http://127.0.0.2/"), read: no(pawl.ClassPermission, "blocked"), mutation: unknown("redirect")},
		"303, metadata":     {handle: echoes(303, "Location", "http://169.254.169.254/"), read: no(pawl.ClassPermission, "blocked"), mutation: unknown("redirect")},
		"307, private":      {handle: echoes(307, "Location", "http://10.0.0.1/"), read: no(pawl.ClassPermission, "blocked"), mutation: no(pawl.ClassLogic, "redirect")},
		"308, another host": {handle: echoes(308, "Location", "http://127.0.0.2/"), read: no(pawl.ClassPermission, "blocked"), mutation: no(pawl.ClassLogic, "redirect")},
		"302, in circles":   {handle: echoes(302, "Location", "/again"), read: no(pawl.ClassLogic, "redirect"), mutation: unknown("redirect")},

		"400": {handle: echoes(400), read: no(pawl.ClassLogic, "rejected"), mutation: no(pawl.ClassLogic, "rejected")},
		"401": {handle: echoes(401), read: no(pawl.ClassAuth, "unauthorized"), mutation: no(pawl.ClassAuth, "unauthorized")},
		"402": {handle: echoes(402), read: no(pawl.ClassPrecondition, "payment_required"), mutation: no(pawl.ClassPrecondition, "payment_required")},
		"403": {handle: echoes(403), read: no(pawl.ClassPermission, "forbidden"), mutation: no(pawl.ClassPermission, "forbidden")},
		"404": {handle: echoes(404), read: no(pawl.ClassLogic, "not_found"), mutation: no(pawl.ClassLogic, "not_found")},
		"409": {handle: echoes(409), read: no(pawl.ClassLogic, "conflict"), mutation: no(pawl.ClassLogic, "conflict")},
		"422": {handle: echoes(422), read: no(pawl.ClassLogic, "rejected"), mutation: no(pawl.ClassLogic, "rejected")},
		"408": {handle: echoes(408), read: no(pawl.ClassTransient, "try_later"), mutation: no(pawl.ClassTransient, "try_later")},
		"425": {handle: echoes(425), read: no(pawl.ClassTransient, "try_later"), mutation: no(pawl.ClassTransient, "try_later")},
		"429": {handle: echoes(429), read: no(pawl.ClassTransient, "rate_limited"), mutation: no(pawl.ClassTransient, "rate_limited")},
		"429, wait": {
			handle: echoes(429, "Retry-After", "7"), read: no(pawl.ClassTransient, "rate_limited"), mutation: no(pawl.ClassTransient, "rate_limited"), wait: 7 * time.Second,
		},
		"429, wait for ever": {
			handle: echoes(429, "Retry-After", "99999999999999999999"), read: no(pawl.ClassTransient, "rate_limited"), mutation: no(pawl.ClassTransient, "rate_limited"), wait: time.Hour,
		},
		"429, until a date": {
			handle: echoes(429, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), read: no(pawl.ClassTransient, "rate_limited"), mutation: no(pawl.ClassTransient, "rate_limited"), wait: time.Hour,
		},
		"429, whenever": {handle: echoes(429, "Retry-After", "soon"), read: no(pawl.ClassTransient, "rate_limited"), mutation: no(pawl.ClassTransient, "rate_limited")},
		"404, huge": {
			handle: reply(404, "text/html", strings.Repeat("x", largestRefusal+1)), read: no(pawl.ClassLogic, "not_found"), mutation: no(pawl.ClassLogic, "not_found"),
		},
		"403, cut off": {
			handle: says("HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nno"), read: no(pawl.ClassPermission, "forbidden"), mutation: no(pawl.ClassPermission, "forbidden"),
		},
		"429, slow": {
			handle: hangs("HTTP/1.1 429 No\r\nRetry-After: 3\r\nContent-Length: 100\r\n\r\nno"), wait: 3 * time.Second,
			read: no(pawl.ClassTransient, "rate_limited"), mutation: no(pawl.ClassTransient, "rate_limited"),
		},

		"500": {handle: echoes(500), read: no(pawl.ClassTransient, "server_error"), mutation: unknown("server_error")},
		"502": {handle: echoes(502), read: no(pawl.ClassTransient, "server_error"), mutation: unknown("server_error")},
		"503, wait": {
			handle: echoes(503, "Retry-After", "9"), read: no(pawl.ClassTransient, "server_error"), mutation: unknown("server_error"), wait: 9 * time.Second,
		},
		"504": {handle: echoes(504), read: no(pawl.ClassTransient, "server_error"), mutation: unknown("server_error")},
		"777": {handle: echoes(777), read: no(pawl.ClassTransient, "server_error"), mutation: unknown("server_error")},

		"hang":             {handle: hangs(""), read: no(pawl.ClassTransient, "timeout"), mutation: unknown("timeout")},
		"hang in the head": {handle: hangs("HTTP/1.1 200 OK\r\nContent-"), read: no(pawl.ClassTransient, "timeout"), mutation: unknown("timeout")},
		"cut":              {handle: says(""), read: no(pawl.ClassTransient, "broken"), mutation: unknown("broken")},
		"garbage":          {handle: says("%&/(tok-4f/9+a z\r\n\r\n"), read: no(pawl.ClassTransient, "unreadable"), mutation: unknown("unreadable")},
		"cut in the head":  {handle: says("HTTP/1.1 200 OK\r\nContent-"), read: no(pawl.ClassTransient, "unreadable"), mutation: unknown("unreadable")},
		"cut in the body":  {handle: says(head + "Content-Length: 100\r\n\r\n{"), read: no(pawl.ClassTransient, "unreadable"), mutation: unknown("unreadable")},
		"cut in a chunk":   {handle: says(head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{"), read: no(pawl.ClassTransient, "unreadable"), mutation: unknown("unreadable")},
		"slow body":        {handle: hangs(head + "Content-Length: 100\r\n\r\n{"), read: no(pawl.ClassTransient, "timeout"), mutation: unknown("timeout")},
		"not gzip":         {handle: says(head + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"), read: no(pawl.ClassTransient, "unreadable"), mutation: unknown("unreadable")},
		"not JSON":         {handle: reply(200, "application/json", "<html>tok-4f/9+a z"), read: no(pawl.ClassTransient, "unreadable"), mutation: unknown("unreadable")},
		"huge":             {handle: reply(200, "text/plain", strings.Repeat("x", 2001)), read: no(pawl.ClassLogic, "too_large"), mutation: unknown("too_large")},
		"huge, announced":  {handle: says(head + "Content-Length: 2001\r\n\r\n{"), read: no(pawl.ClassLogic, "too_large"), mutation: unknown("too_large")},
		"not text":         {handle: reply(200, "text/plain", "a\xff"), read: no(pawl.ClassLogic, "not_text"), mutation: ok()},
	}
	for name, test := range tests {
		for _, method := range append(mutations(), "get") {
			t.Run(name+", "+method, func(t *testing.T) {
				t.Parallel()
				server := serve(t, test.handle)
				s := connect(t, server.URL, "timeout: 300ms\nmaxBody: 2000\n")
				want := test.mutation
				if effectOf(method) == outbound.Read {
					want = test.read
				}
				check(t, s, method, want, test.wait, true)
				if got := server.requests(); effectOf(method) == outbound.Mutation && len(got) != 1 {
					t.Errorf("the mutation was sent %d times", len(got))
				}
			})
		}
	}
}

// check makes a call and compares what it comes to.
func check(t *testing.T, s *Service, method string, want outcome, wait time.Duration, sent bool) {
	t.Helper()
	if want.class == "" {
		do(t, s, method, object{"path": "/orders"})
		return
	}
	e := fail(t, s, method, object{"path": "/orders", "query": object{"q": "private-question"}})
	if got := (outcome{e.Class, e.Code, e.NotApplied}); got != want {
		t.Errorf("%s: %+v, want %+v (%v)", method, got, want, e)
	}
	if effectOf(method) == outbound.Mutation && e.NotSent == sent { // whether the next call has the same key
		t.Errorf("%s: that it was not sent is %v", method, e.NotSent)
	}
	if e.Class != pawl.ClassTransient {
		wait = 0
	}
	if e.RetryAfter != wait {
		t.Errorf("%s: wait %v, want %v", method, e.RetryAfter, wait)
	}
	if !strings.HasPrefix(e.Msg, "shop (") || strings.Contains(e.Msg, "private-question") || len(e.Msg) > 1000 {
		t.Errorf("%s: the message is %q", method, e.Msg)
	}
}

// surface, Connection, X-69: before anything was sent it did not happen, and
// nobody refused it.
func TestWhatWasNotSentDidNotHappen(t *testing.T) {
	plain := serve(t, echoes(200))
	tests := map[string]struct {
		base string
		want outcome
	}{
		"refused":        {deadAddress(t), no(pawl.ClassTransient, "connect")},
		"no such host":   {"http://" + strings.Repeat("x", 64) + ".invalid", no(pawl.ClassTransient, "dns")},
		"not TLS":        {strings.Replace(plain.URL, "http:", "https:", 1), no(pawl.ClassTransient, "tls")},
		"not allowed":    {"http://127.0.0.2:1", no(pawl.ClassPermission, "blocked")},
		"odd address":    {"http://2130706433", no(pawl.ClassLogic, "invalid")},
		"private by far": {"http://[fd00::1]", no(pawl.ClassPermission, "blocked")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := connect(t, "'"+test.base+"'", "")
			for _, method := range []string{"get", "head", "post", "put", "patch", "delete"} {
				check(t, s, method, test.want, 0, false)
			}
		})
	}
	if got := plain.requests(); len(got) != 0 {
		t.Errorf("the server got %v", got)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	for method, want := range map[string]outcome{"get": no(pawl.ClassTransient, "cancelled"), "post": unknown("cancelled")} {
		ctx, cancel := context.WithCancel(t.Context())
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			cancel()
			hangs("")(w, r)
		})
		s := connect(t, server.URL, "")
		_, err := s.Call(ctx, callOf(t, method, object{"path": "/x"}))
		if e := own(t, err); (outcome{e.Class, e.Code, e.NotApplied}) != want {
			t.Errorf("%s under way: %+v", method, e)
		}
		_, err = s.Call(ctx, callOf(t, method, object{"path": "/x"}))
		if e := own(t, err); (outcome{e.Class, e.Code, e.NotApplied}) != no(pawl.ClassTransient, "cancelled") {
			t.Errorf("%s before: %+v", method, e)
		}
		if got := server.requests(); len(got) != 1 {
			t.Errorf("%s was sent %d times", method, len(got))
		}
	}
}

// the message of a 401 names the service; what it said is quoted, short
// and on one line.
func TestErrorsNameTheServiceAndQuoteItsAnswer(t *testing.T) {
	server := serve(t, reply(401, "text/plain", "wrong\n\x00 key "+token+strings.Repeat(" and so on", 100)))
	host := strings.TrimPrefix(server.URL, "http://")
	e := fail(t, connect(t, server.URL, ""), "get", object{"path": "/orders"})
	start := "shop (" + host + "): GET /orders was answered 401 Unauthorized: wrong key [secret SHOP_TOKEN] and so on"
	if !strings.HasPrefix(e.Msg, start) || len(e.Msg) > len(start)+longestQuote || !strings.Contains(e.Hint, "shop ("+host+")") {
		t.Errorf("the message is %q, the hint %q", e.Msg, e.Hint)
	}
}

// A secret that is cut off in a message would not be recognised any more.
func TestNoPartOfASecretIsTold(t *testing.T) {
	for length := range longestQuote + 20 {
		if length < longestQuote-30 {
			continue
		}
		server := serve(t, reply(400, "text/plain", strings.Repeat("x", length)+token))
		s := connect(t, server.URL+"/"+strings.Repeat("y", length)+"/${SHOP_TOKEN}", "")
		if e := fail(t, s, "get", object{}); strings.Contains(e.Msg, "tok-") {
			t.Errorf("after %d characters: %s", length, e.Msg)
		}
	}
}

// A web hook has its key in the URL.
func TestSecretsInTheBaseURLAreNotTold(t *testing.T) {
	s := connect(t, "'"+deadAddress(t)+"/hook/${SHOP_TOKEN}'", "")
	e := fail(t, s, "post", object{"path": "/x", "body": object{}})
	if !strings.Contains(e.Msg, ": POST /hook/[secret SHOP_TOKEN]/x: ") {
		t.Errorf("the message is %q", e.Msg)
	}
	if _, err := s.Test(t.Context()); !strings.Contains(own(t, err).Msg, "GET /hook/[secret SHOP_TOKEN]: ") {
		t.Errorf("the message of Test is %q", err)
	}
	nowhere := connect(t, "'http://${TENANT}."+strings.Repeat("x", 64)+".invalid'", "")
	if e := fail(t, nowhere, "get", object{}); strings.Contains(e.Msg+e.Hint, "7f3a") || !strings.HasPrefix(e.Msg, "shop ([secret TENANT].xxx") {
		t.Errorf("the message is %q", e.Msg)
	}
}

func TestRedirectsOfReadsAreFollowed(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusFound)
			return
		}
		reply(200, "text/plain", r.URL.Path)(w, r)
	})
	if got := do(t, connect(t, server.URL, ""), "get", object{"path": "/old"}); got["body"] != "/new" {
		t.Errorf("the result is %v", got)
	}
}

// A 307 of the same host says that the mutation was not done there; it is
// asked for once more, with its key.
func TestMutationFollowsA307OfItsHost(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusTemporaryRedirect)
			return
		}
		reply(201, "", "")(w, r)
	})
	do(t, connect(t, server.URL, ""), "post", object{"path": "/old", "body": object{"a": 1}})
	got := server.requests()
	if len(got) != 2 || got[1].uri != "/new" || got[1].body != `{"a":1}` || got[1].header.Get("Idempotency-Key") != "key-1/ä" {
		t.Errorf("the server got %+v", got)
	}
}

func TestResultHasStatusHeadersAndBody(t *testing.T) {
	tests := map[string]struct {
		contentType, body string
		want              any
	}{
		"JSON":               {"application/json; charset=utf-8", " {\"n\": 1.50}\n", object{"n": 1.5}},
		"JSON of a kind":     {"application/problem+json", `[1]`, []any{1.0}},
		"JSON, badly named":  {"application/json; charset", `true`, true},
		"JSON with a mark":   {"application/json", "\ufeff1", 1.0},
		"JSON, bad bytes":    {"application/json", "\"a\xff\"", "a\ufffd"},
		"JSON, nothing":      {"application/json", " \n", nil},
		"text":               {"text/plain", "{}", "{}"},
		"text without type":  {"", "hello\n", "hello\n"},
		"HTML":               {"text/html", "<b>é</b>", "<b>é</b>"},
		"nothing":            {"text/plain", "", nil},
		"an echo in text":    {"text/plain", "you are Bearer " + token, "you are Bearer [secret SHOP_TOKEN]"},
		"an echo in JSON":    {"application/json", `{"tok-4f/9\u002ba z":"tok-4f\/9+a z"}`, object{"[secret SHOP_TOKEN]": "[secret SHOP_TOKEN]"}},
		"an echo in a query": {"text/plain", "?k=tok-4f%2F9%2Ba+z", "?k=[secret SHOP_TOKEN]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := connect(t, serve(t, reply(201, test.contentType, test.body)).URL, "")
			for _, method := range []string{"get", "post"} {
				got := do(t, s, method, object{"path": "/x"})
				if diff := cmp.Diff(test.want, got["body"]); diff != "" || got["status"] != 201.0 {
					t.Errorf("%s: %v\n%s", method, got, diff)
				}
			}
			if got := do(t, s, "head", object{"path": "/x"}); got["body"] != nil || got["status"] != 201.0 {
				t.Errorf("head: %v", got)
			}
		})
	}
}

func TestResultShowsHarmlessHeadersOnly(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Link"] = []string{"<a>", "<b>"}
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("X-RateLimit-Remaining", "3")
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("WWW-Authenticate", "Basic")
		w.Header().Set("X-Api-Key", "k")
		w.Header().Set("Location", "/next?key=tok-4f%2F9%2Ba+z")
		w.Header()["Date"] = nil
		reply(200, "text/plain", "x")(w, r)
	})
	got := do(t, connect(t, server.URL, ""), "get", object{})
	want := object{"link": "<a>, <b>", "etag": `"1"`, "x-ratelimit-remaining": "3", "location": "/next?key=[secret SHOP_TOKEN]", "content-type": "text/plain"}
	if diff := cmp.Diff(any(want), got["headers"]); diff != "" {
		t.Error(diff)
	}
}

func TestNotModifiedIsAResultForWhoAsked(t *testing.T) {
	s := connect(t, serve(t, reply(304, "", "")).URL, "")
	got := do(t, s, "get", object{"headers": object{"if-none-match": `"1"`}})
	if got["status"] != 304.0 || got["body"] != nil {
		t.Errorf("the result is %v", got)
	}
	check(t, s, "get", no(pawl.ClassLogic, "redirect"), 0, true)
}
