package quota

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
)

// Context 3.14.4, 3.16.1: files and folders of providers, with secrets from the
// environment and from files, in both spellings.
func TestProvidersAreLoaded(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secret"), bearerToken+"\n")
	file := write(t, filepath.Join(t.TempDir(), "one.yaml"), "kind: provider\ndomain: API.Example.com:443\nlimit: 60\nperiod: 1m\napi_key: ${API_KEY}\napi_key_param: key\n")
	write(t, filepath.Join(dir, "two.yml"), "kind: provider\ndomain: localhost:8080\nauth: {type: bearer, token: 'file:secret'}\n---\nkind: source\nname: other\n")
	write(t, filepath.Join(dir, ".hidden.yaml"), "kind: nonsense")
	write(t, filepath.Join(dir, "notes.txt"), "kind: nonsense")
	if err := os.Mkdir(filepath.Join(dir, "folder.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := Load([]string{file, file}, []string{dir, dir}, environment)
	if err != nil {
		t.Fatal(err)
	}
	all := p.All()
	if len(all) != 2 {
		t.Fatalf("the providers are %v", all)
	}
	if got := all[0]; got.Domain != "api.example.com" || got.Limit != 60 || got.Period != time.Minute || got.Auth != AuthAPIKey {
		t.Errorf("the first is %v", got)
	}
	if got, ok := p.Find("LOCALHOST:8080"); !ok || got.Auth != AuthBearer || got.Limit != 0 || got.credential.value() != bearerToken {
		t.Errorf("the second is %v", got)
	}
	if _, ok := (*Providers)(nil).Find("api.example.com"); ok {
		t.Error("no providers have one")
	}
}

// Every fault is told, with its place and without secrets.
func TestFaultyProvidersAreRefused(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string // in this order, one for each fault
	}{
		{"domain: a.example", []string{"1:1: kind is missing"}},
		{"kind: providr\ndomain: a.example", []string{"1:7: this is \"providr\", not a provider. Did you mean provider?"}},
		{"kind: source\nname: x", []string{", not a provider"}},
		{"kind: provider", []string{"1:1: domain is missing"}},
		{"kind: provider\ndomain: https://a.example/x", []string{"2:9: domain \"https://a.example/x\" must be the host"}},
		{"kind: provider\ndomain: 'user@a.example'", []string{"2:9: domain"}},
		{"kind: provider\ndomain: '*.example'", []string{"2:9: domain"}},
		{"kind: provider\ndomain: ${NOT_SET}", []string{"2:9: domain: the environment variable NOT_SET is not set"}},
		{"kind: provider\ndomain: a.example\nlimit: 5", []string{"period is missing"}},
		{"kind: provider\ndomain: a.example\nperiod: 5m", []string{"limit is missing"}},
		{"kind: provider\ndomain: a.example\nlimit: 0\nperiod: 5 minutes", []string{"3:8: limit must be from 1", "4:9: period \"5 minutes\" must be"}},
		{"kind: provider\ndomain: a.example\nlimt: 0", []string{"3:1: unknown field \"limt\". Did you mean limit?"}},
		{"kind: provider\ndomain: a.example\napiKey: ${API_KEY", []string{"3:9: apiKey: ${ must be followed"}},
		{"kind: provider\ndomain: a.example\napiKey: ${NOT_SET}", []string{"3:9: apiKey: the environment variable NOT_SET is not set"}},
		{"kind: provider\ndomain: a.example\napiKey: ${LINES}", []string{"3:9: apiKey holds a line break"}},
		{"kind: provider\ndomain: a.example\napiKey: file:nowhere", []string{"3:9: apiKey: read the file nowhere: no such file"}},
		{"kind: provider\ndomain: a.example\napiKey: file:.", []string{"3:9: apiKey: read the file .: it is not a file"}},
		{"kind: provider\ndomain: a.example\napiKey: ''", []string{"3:9: apiKey is empty"}},
		{"kind: provider\ndomain: a.example\napiKeyHeader: X-Key", []string{"apiKey is missing"}},
		{"kind: provider\ndomain: a.example\napiKey: ${API_KEY}\napiKeyHeader: Host", []string{"4:15: \"Host\" cannot be the header"}},
		{"kind: provider\ndomain: a.example\napiKey: ${API_KEY}\napi_key: x\napiKeyHeader: X\napiKeyParam: y", []string{"4:1: apiKey and api_key mean the same", "5:15: apiKeyParam and apiKeyHeader exclude"}},
		{"kind: provider\ndomain: a.example\napiKey: ${API_KEY}\nauth: {type: bearer, token: x}", []string{"4:8: auth and apiKey exclude"}},
		{"kind: provider\ndomain: a.example\nauth: {type: baerer, token: x}", []string{"Did you mean bearer?"}},
		{"kind: provider\ndomain: a.example\nauth: {type: bearer}", []string{"token is missing"}},
		{"kind: provider\ndomain: a.example\nauth: {type: basic, username: 'a:b', token: '${TOKEN}'}", []string{"username must not hold a colon", "token is for the type bearer", "password is missing"}},
		{"kind: provider\ndomain: a.example\nauth: {type: oauth2, clientId: x, clientSecret: '${CLIENT_SECRET}'}", []string{"tokenUrl is missing"}},
		{"kind: provider\ndomain: a.example\nauth: {type: oauth2, clientId: x, clientSecret: '${CLIENT_SECRET}', tokenUrl: 'ftp://x', clientAuth: form}", []string{"tokenUrl must be a URL", "clientAuth \"form\" is not known"}},
		{"kind: provider\ndomain: a.example\n---\nkind: provider\ndomain: A.example:80", []string{"5:9: the domain a.example has a provider already, at "}},
		{"kind: provider\ndomain: \"a.example\napiKey: " + bearerToken, []string{"not valid YAML"}},
	} {
		file := write(t, filepath.Join(t.TempDir(), "p.yaml"), c.text)
		p, err := Load([]string{file}, nil, environment)
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || p != nil || e.Code != pawl.CodeInvalid {
			t.Errorf("%s\nis answered %v, %v", c.text, p, err)
			continue
		}
		checkNoSecret(t, "the fault", err.Error())
		told := ""
		for _, f := range e.Fields {
			told += f.String() + "\n"
			checkNoSecret(t, "the fault", f.String())
		}
		good := len(e.Fields) == len(c.want)
		for _, want := range c.want {
			good = good && strings.Contains(told, want)
		}
		if !good {
			t.Errorf("%s\nis answered\n%swant %q", c.text, told, c.want)
		}
	}
}

// Two providers of one domain are refused with both places; files and folders
// that are not there are told.
func TestFaultsOfSeveralFilesAreToldTogether(t *testing.T) {
	dir := t.TempDir()
	one := write(t, filepath.Join(dir, "one.yaml"), "kind: provider\ndomain: a.example\n")
	two := write(t, filepath.Join(dir, "two.yaml"), "# the other\nkind: provider\ndomain: a.example\n")
	_, err := Load([]string{filepath.Join(dir, "none.yaml")}, []string{dir, filepath.Join(dir, "nowhere")}, environment)
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || len(e.Fields) != 3 {
		t.Fatalf("answered %v", err)
	}
	if got, want := e.Fields[2].String(), two+":3:9: the domain a.example has a provider already, at "+one+":2:9"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

func TestDomainsAreWrittenInOneWay(t *testing.T) {
	for from, want := range map[string]string{
		"https://API.Example.com/x":   "api.example.com",
		"https://api.example.com:443": "api.example.com",
		"http://api.example.com:80/":  "api.example.com",
		"http://api.example.com.:80/": "api.example.com",
		"http://api.example.com:":     "api.example.com",
		"http://localhost:8080":       "localhost:8080",
		"http://localhost.:8080":      "localhost:8080",
		"http://[2001:DB8::80]":       "[2001:db8::80]",
		"http://[2001:db8::1]:443":    "[2001:db8::1]",
		"http://[2001:db8::1]:444":    "[2001:db8::1]:444",
		"https://user:pw@a.example":   "a.example",
	} {
		u, err := url.Parse(from)
		if err != nil {
			t.Fatal(err)
		}
		if got := Domain(u); got != want {
			t.Errorf("%s is booked under %s, want %s", from, got, want)
		}
	}
}
