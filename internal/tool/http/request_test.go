package httptool

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestPathsAreBelowTheBaseURL(t *testing.T) {
	server := serve(t, reply(200, "", ""))
	tests := []struct {
		base string
		args object
		want string
	}{
		{"", object{}, "/"},
		{"", object{"path": "/orders"}, "/orders"},
		{"", object{"path": "orders/7"}, "/orders/7"},
		{"/v1", object{}, "/v1"},
		{"/v1/", object{"path": ""}, "/v1/"},
		{"/v1/", object{"path": "/orders/"}, "/v1/orders/"},
		{"/v1", object{"path": "/a b/é/@me:7"}, "/v1/a%20b/%C3%A9/@me:7"},
		{"/v1", object{"path": "/a%2Fb/50%25"}, "/v1/a%2Fb/50%25"},
		{"/v%2f1", object{"path": "/x"}, "/v%2f1/x"},
		{"", object{"path": "/a?b=1&c=x%20y"}, "/a?b=1&c=x+y"},
		{"", object{"path": "/a?b=1", "query": object{"b": 2}}, "/a?b=1&b=2"},
		{"", object{"path": "/a", "query": object{"t": "ä&b", "n": 1.50, "big": 12345678901, "yes": true, "none": nil, "list": []any{"x", 2, nil}, "empty": []any{}}}, "/a?big=12345678901&list=x&list=2&n=1.5&t=%C3%A4%26b&yes=true"},
		{"", object{"path": "/...", "query": nil}, "/..."},
	}
	for _, test := range tests {
		s := connect(t, server.URL+test.base, "")
		do(t, s, "get", test.args)
		if got := server.last(t).uri; got != test.want {
			t.Errorf("base %q, %v: asked for %s, want %s", test.base, test.args, got, test.want)
		}
	}
}

func TestPathsThatLeaveTheBaseURLAreRefused(t *testing.T) {
	server := serve(t, reply(200, "", ""))
	s := connect(t, server.URL+"/v1", "")
	paths := []string{
		"http://other.example/", "HTTPS://other.example/", "file:/x", "javascript:x", "//other.example/x", "///x",
		"..", "/..", "/../admin", "/a/../../admin", "/./a", "/a/.", "/%2e%2e/admin", "/%2E./admin", "/a/..%2f..%2fadmin", "/%252e%252e/admin", "/%25252e%25252e/x",
		"/..;x=1/admin", "/%2e%2e%3bx/admin", `/..\admin`, `\\other.example`, "/a%5c..", "/a\x00", "/a\r\nHost: x", "/a%0d%0ab", "/a%00", "/a\u0085",
		"/100%", "/%zz", "/a#b", "/" + strings.Repeat("x", longestPath), "/a?b=%zz", "/a?b;c", "/a?" + strings.Repeat("x", longestURL),
	}
	for _, path := range paths {
		for _, method := range []string{"get", "post"} {
			e := fail(t, s, method, object{"path": path})
			if e.Class != pawl.ClassLogic || e.Code != connector.CodeBadArguments || !e.NotApplied {
				t.Errorf("%s %.40q: %+v", method, path, e)
			}
		}
	}
	if got := server.requests(); len(got) != 0 {
		t.Errorf("the server got %+v", got)
	}
}

// Whatever a path is, either it is refused or it stays below the base URL.
func TestNoPathLeavesTheBaseURL(t *testing.T) {
	base, err := url.Parse("https://shop.example.com/v1")
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{base: base}
	pieces := []string{"/", ".", "..", "%2e", "%2f", "%25", "\\", "@", ":", "?", "#", "a", "//", "http:", "é", " ", ";"}
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces"), "")
		u, err := s.target(path, nil)
		if err != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil {
			t.Fatal(err)
		}
		clean := base.JoinPath().ResolveReference(again) // as a server would
		if clean.Host != base.Host || clean.Scheme != base.Scheme || clean.User != nil || clean.Path != "/v1" && !strings.HasPrefix(clean.Path, "/v1/") {
			t.Errorf("%q leads to %s", path, clean)
		}
	})
}

func TestArgumentsAreStrict(t *testing.T) {
	server := serve(t, reply(200, "", ""))
	s := connect(t, server.URL, "idempotencyHeader: X-Key\n")
	header := func(name, value string) object { return object{"headers": object{name: value}} }
	tests := []struct {
		method string
		args   any
		fault  string
	}{
		{"get", []any{}, "the arguments are not an object"},
		{"get", object{"pth": "/x"}, `unknown argument "pth"`},
		{"get", object{"path": 7}, "path cannot be a JSON number"},
		{"get", object{"query": "a=1"}, "query cannot be a JSON string"},
		{"get", object{"query": object{"a": object{}}}, `query: the value of "a" cannot be sent`},
		{"get", object{"query": object{"a": []any{[]any{1}}}}, `query: the value of "a" cannot be sent`},
		{"get", object{"headers": object{"a": 1}}, "headers cannot be a JSON number"},
		{"get", header("a b", "1"), `"a b" is not the name of a header`},
		{"get", header("a:", "1"), `"a:" is not the name of a header`},
		{"get", header("x", "1\r\nHost: y"), "the value of the header x is too long, or has control characters"},
		{"get", header("x", strings.Repeat("x", longestHeader+1)), "the value of the header x is too long"},
		{"get", object{"headers": object{"X-A": "1", "x-a": "2"}}, "the header x-a is there twice"},
		{"get", object{"body": object{}}, "get sends no body"},
		{"head", object{"body": "x"}, "head sends no body"},
		{"post", object{"body": "x"}, "the body is a text of unknown type"},
		{"post", object{"body": object{}, "headers": object{"Content-Type": "text/plain"}}, `a body of the type "text/plain" must be a text`},
		{"post", object{"body": strings.Repeat("x", largestSent+1), "headers": object{"Content-Type": "text/plain"}}, "the body has 4194305 bytes"},
		{"connect", object{}, `an http connection has no method "connect"`},
	}
	for _, name := range []string{
		"Authorization", "authorization", "Host", "Idempotency-Key", "idempotency_key", "X-Key", "Cookie", "Content-Length", "content_length",
		"Transfer-Encoding", "Connection", "Proxy-Authorization", "X-HTTP-Method-Override", "x_http_method", "Upgrade", "TE",
	} {
		tests = append(tests, struct {
			method string
			args   any
			fault  string
		}{"get", header(name, "x"), "the header " + name + " cannot be set by a script"})
	}
	for _, test := range tests {
		e := fail(t, s, test.method, test.args)
		if e.Class != pawl.ClassLogic || !e.NotApplied || !strings.HasPrefix(e.Msg, test.fault) {
			t.Errorf("%s(%.60v): %+v\nwant %s", test.method, test.args, e, test.fault)
		}
	}
	if got := server.requests(); len(got) != 0 {
		t.Errorf("the server got %+v", got)
	}
}

func TestScriptsCannotOverrideHeadersOfTheDefinition(t *testing.T) {
	env := connector.Env{Getenv: environment, HTTP: client(t)}
	server := serve(t, reply(200, "", ""))
	settings := settingsOf(t, env, "baseUrl: "+server.URL+"\nheaders: {X-Tenant: t1, Accept: text/csv, content-type: application/xml}\n")
	connection, ok := New(settings)
	if !ok {
		t.Fatal(settings.Fields())
	}
	s := connection.(*Service)
	for _, name := range []string{"x-tenant", "X_TENANT", "accept", "Content-Type"} {
		if e := fail(t, s, "post", object{"headers": object{name: "t2"}}); !strings.Contains(e.Msg, "cannot be set by a script") {
			t.Errorf("%s: %v", name, e)
		}
	}
	do(t, s, "post", object{"body": "<a/>"}) // the definition says what a text is
	want := sent{"POST", "/", "<a/>", http.Header{
		"X-Tenant": {"t1"}, "Accept": {"text/csv"}, "Content-Type": {"application/xml"}, "User-Agent": {"pawl"},
		"Idempotency-Key": {"key-1/ä"}, "Content-Length": {"4"}, "Accept-Encoding": {"gzip"}, "Connection": {"close"},
	}}
	if diff := cmp.Diff(want, server.last(t), cmp.AllowUnexported(sent{})); diff != "" {
		t.Error(diff)
	}
}

// surface, Connection: the host sets the key on every mutation.
func TestRequestsCarryBodyKeyAndCredentials(t *testing.T) {
	server := serve(t, reply(200, "", ""))
	s := connect(t, server.URL, "idempotencyHeader: X-Request-Key\n")
	tests := []struct {
		args              object
		contentType, body string
	}{
		{object{}, "", ""},
		{object{"body": nil}, "", ""},
		{object{"body": object{"a": []any{1, "<é>"}}}, "application/json", `{"a":[1,"<é>"]}`},
		{object{"body": false}, "application/json", `false`},
		{object{"body": []any{}, "headers": object{"content-type": "application/vnd.api+json"}}, "application/vnd.api+json", `[]`},
		{object{"body": "a=1&b=é", "headers": object{"Content-Type": "application/x-www-form-urlencoded"}}, "application/x-www-form-urlencoded", "a=1&b=é"},
		{object{"body": `{"raw":1}`, "headers": object{"Content-Type": "application/json"}}, "application/json", `{"raw":1}`},
	}
	for _, test := range tests {
		for _, method := range mutations() {
			do(t, s, method, test.args)
			got := server.last(t)
			if got.method != strings.ToUpper(method) || strings.ReplaceAll(strings.ReplaceAll(got.body, `\u003c`, "<"), `\u003e`, ">") != test.body || got.header.Get("Content-Type") != test.contentType ||
				got.header.Get("X-Request-Key") != "key-1/ä" || got.header.Get("Authorization") != "Bearer "+token {
				t.Errorf("%s(%v): sent %+v", method, test.args, got)
			}
		}
	}
	do(t, s, "get", object{"headers": object{"X-Trace": "1", "x-none": nil}})
	got := server.last(t)
	if got.header.Get("X-Request-Key") != "" || got.header.Get("X-Trace") != "1" || got.header.Get("Authorization") != "Bearer "+token || got.header.Values("X-None") != nil {
		t.Errorf("get sent %+v", got)
	}
}

func TestMutationNeedsAKey(t *testing.T) {
	s := connect(t, deadAddress(t), "")
	_, err := s.Call(t.Context(), connector.Call{Method: "post"})
	if e := own(t, err); e.Class != pawl.ClassInternal || e.Code != "no_key" || !e.NotApplied {
		t.Errorf("%+v", e)
	}
}
