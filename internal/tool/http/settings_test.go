package httptool

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

func TestDefinitionsAreChecked(t *testing.T) {
	const base = "baseUrl: https://shop.example.com\n"
	tests := []struct {
		name, text string
		faults     []string
	}{
		{"least", base, nil},
		{"all", base + "headers: {A: '${SHOP_TOKEN}'}\ntimeout: 10m\nmaxBody: 32MiB\nidempotencyHeader: X\nreconcile:\n  delete:\n    get: '{args.path}'\n  post: {get: '/x/{idempotencyKey}', found: a.0.b, absentAfter: 720h}\ntest: {get: /health}\n", nil},
		{"no base", "timeout: 1s\n", []string{"1:1: baseUrl is missing"}},
		{"not a URL", "baseUrl: 'https://a b'\n", []string{`2:10: baseUrl "https://a b" cannot be used: it is not a URL`}},
		{"another scheme", "baseUrl: ftp://a\n", []string{`2:10: baseUrl "ftp://a" cannot be used: it must begin with https:// or http://`}},
		{"no scheme", "baseUrl: shop.example.com\n", []string{`2:10: baseUrl "shop.example.com" cannot be used: it must begin`}},
		{"no host", "baseUrl: https:///x\n", []string{`2:10: baseUrl "https:///x" cannot be used: it names no host`}},
		{"password", "baseUrl: https://a:b@c\n", []string{`2:10: baseUrl "https://a:b@c" cannot be used: it holds a user name`}},
		{"query", "baseUrl: https://c/?a=b\n", []string{`2:10: baseUrl "https://c/?a=b" cannot be used: it must end with the path`}},
		{"climbing", "baseUrl: https://c/a/../b\n", []string{`2:10: baseUrl "https://c/a/../b" cannot be used: its path has ..`}},
		{"secret in a bad base", "baseUrl: 'ftp://${SHOP_TOKEN}'\n", []string{`2:10: baseUrl "ftp://${SHOP_TOKEN}" cannot be used`}},
		{"timeout", base + "timeout: 11m\n", []string{"3:10: timeout must be from 1ms to 10m"}},
		{"timeout without unit", base + "timeout: 30\n", []string{`3:10: timeout "30" is not a length of time such as 30s`}},
		{"maxBody", base + "maxBody: 33MiB\n", []string{"3:10: maxBody must be from 1 to 32MiB"}},
		{"headers", base + "headers: [a]\n", []string{"3:10: headers must be a mapping of names and values"}},
		{"header not a text", base + "headers: {A: 1}\n", []string{"3:14: A must be a text"}},
		{"header without its secret", base + "headers: {A: '${NONE}'}\n", []string{"3:14: A: the environment variable NONE is not set"}},
		{"header of two lines", base + "headers: {A: 'x ${LINES}'}\n", []string{"3:14: the value of the header A holds a line break"}},
		{"header with a bad name", base + "headers: {A B: x}\n", []string{`3:11: "A B" is not the name of a header`}},
		{"header twice", base + "headers: {A: x, a: y}\n", []string{"3:17: the header a is there twice"}},
		{"header of the host", base + "headers: {Host: x}\n", []string{"3:11: the header Host is set by Pawl"}},
		{"header of the key", base + "headers: {idempotency-key: x}\n", []string{"3:11: the header idempotency-key is set by Pawl"}},
		{"bad key header", base + "idempotencyHeader: a b\n", []string{`3:20: "a b" is not the name of a header`}},
		{"taken key header", base + "idempotencyHeader: Authorization\n", []string{"3:20: the header Authorization has another meaning"}},
		{"reconcile is a text", base + "reconcile: x\n", []string{"3:12: reconcile must be a mapping of names and values"}},
		{"reconcile of a read", base + "reconcile: {get: {get: /x}}\n", []string{`3:13: there is no mutation "get".`}},
		{"reconcile of nothing", base + "reconcile: {pots: {get: /x}}\n", []string{`3:13: there is no mutation "pots". Did you mean post?`}},
		{"reconcile without get", base + "reconcile:\n  post: {found: a}\n", []string{"4:10: get is missing"}},
		{"reconcile with more", base + "reconcile:\n  post: {get: /x, fond: a}\n", []string{`4:19: unknown field "fond". Did you mean found?`}},
		{"reconcile is not a section", base + "reconcile: {post: /x}\n", []string{"3:19: post must be a mapping of names and values"}},
		{"unknown placeholder", base + "reconcile: {post: {get: '/{idempotenceKey}'}}\n", []string{`3:25: unknown placeholder "{idempotenceKey}". Did you mean idempotencyKey?`}},
		{"placeholder of nothing", base + "reconcile: {post: {get: '/{args}'}}\n", []string{`3:25: unknown placeholder "{args}".`}},
		{"open placeholder", base + "reconcile: {post: {get: '/{args.a'}}\n", []string{"3:25: there is a { without a }"}},
		{"closed placeholder", base + "reconcile: {post: {get: '/a}'}}\n", []string{"3:25: there is a } without a {"}},
		{"another host", base + "reconcile: {post: {get: '//x/{idempotencyKey}'}}\n", []string{`3:25: the path "//x/x" cannot be used: it names a host`}},
		{"found nothing", base + "reconcile: {post: {get: /x, found: a..b}}\n", []string{`3:36: found "a..b" must be names with dots`}},
		{"absence", base + "reconcile: {post: {get: /x, absentAfter: 721h}}\n", []string{"3:42: absentAfter must be from 1ms to 720h"}},
		{"absence without unit", base + "reconcile: {post: {get: /x, absentAfter: 90}}\n", []string{`3:42: absentAfter "90" is not a length of time such as 30s or 2m`}},
		{"test of another host", base + "test: {get: 'http://x'}\n", []string{`3:13: the path "http://x" cannot be used: it has a scheme`}},
		{"test of nothing", base + "test: {}\n", []string{"3:7: get is missing"}},
		{"unknown field", base + "baseURL: x\n", []string{`3:1: unknown field "baseURL". Did you mean baseUrl?`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := settingsOf(t, connector.Env{Getenv: environment, HTTP: client(t)}, test.text)
			_, ok := New(s)
			built := ok
			s.Unknown()
			var got []string
			for _, fault := range s.Fields() {
				got = append(got, fault.String())
				checkNoSecret(t, fault.String())
			}
			if len(got) != len(test.faults) || built && len(test.faults) > 0 && test.name != "unknown field" {
				t.Fatalf("ok %v, faults\n%s", built, strings.Join(got, "\n"))
			}
			for i, want := range test.faults {
				if !strings.HasPrefix(got[i], "shop.yaml:"+want) {
					t.Errorf("fault %q\nwant  %q", got[i], want)
				}
			}
		})
	}
}

func TestDefinitionIsCheckedWithoutANetwork(t *testing.T) {
	const text = "baseUrl: https://shop.example.com\n"
	s := settingsOf(t, connector.Env{Getenv: environment}, text)
	if _, ok := New(s); ok || len(s.Fields()) != 1 || !strings.Contains(s.Fields()[0].String(), "2:10: calls to web services are not possible here") {
		t.Errorf("ok %v, %v", ok, s.Fields())
	}
	s = settingsOf(t, connector.Env{Getenv: environment, CheckOnly: true}, text)
	connection, ok := New(s)
	if !ok || len(s.Fields()) != 0 {
		t.Fatalf("ok %v, %v", ok, s.Fields())
	}
	if e := fail(t, connection.(*Service), "get", object{}); e.Class != pawl.ClassLogic || !e.NotApplied {
		t.Errorf("a call of what is only looked at: %+v", e)
	}
}
