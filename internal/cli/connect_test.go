package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// listener is a server that keeps what it is told.
type listener struct {
	*httptest.Server
	mu    sync.Mutex
	heard []string // the header Authorization of every request
}

func listen(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.heard = append(l.heard, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(`{"items":[]}`))
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) told() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.heard, "\n")
}

// A config file that lies in the working directory can come from anybody. It
// neither chooses where the user's token goes nor which file is sent as one.
func TestFoundConfigFileGetsNoTokenOfTheUser(t *testing.T) {
	outside := folder(t, map[string]string{"secret": "stolen\n", "data/admin.token": "stolen\n"})
	secret, data := filepath.Join(outside, "secret"), filepath.Join(outside, "data")
	tests := map[string]struct {
		file  string
		env   map[string]string
		flags []string
		link  map[string]string // in the folder: name to target
	}{
		"token of the environment":      {"server: URL\n", map[string]string{"PAWL_TOKEN": "stolen"}, nil, nil},
		"token of a flag":               {"server: URL\n", nil, []string{"--token", "stolen"}, nil},
		"listen address":                {"addr: ADDR\n", map[string]string{"PAWL_TOKEN": "stolen"}, nil, nil},
		"token file of the environment": {"server: URL\n", map[string]string{"PAWL_TOKEN_FILE": secret}, nil, nil},
		"token file of a flag":          {"server: URL\n", nil, []string{"--token-file", secret}, nil},
		"token file of its own":         {"server: URL\ntokenFile: " + secret + "\n", nil, nil, nil},
		"token file by dots":            {"server: URL\ntokenFile: a/../../../../../../../../../../" + secret + "\n", nil, nil, nil},
		"token file for your server":    {"tokenFile: " + secret + "\n", map[string]string{"PAWL_URL": "URL"}, nil, nil},
		"token file behind a link":      {"server: URL\ntokenFile: mine\n", nil, nil, map[string]string{"mine": secret}},
		"folder behind a link":          {"server: URL\ntokenFile: mine/secret\n", nil, nil, map[string]string{"mine": outside}},
		"data folder":                   {"server: URL\ndata: " + data + "\n", nil, nil, nil},
		"data folder, by address":       {"addr: ADDR\ndata: " + data + "\n", nil, nil, nil},
		"data folder behind a link":     {"server: URL\n", nil, nil, map[string]string{".pawl": data}},
		"admin token behind a link":     {"server: URL\ndata: .\n", nil, nil, map[string]string{"admin.token": secret}},
		"data folder of the user":       {"server: URL\n", map[string]string{"PAWL_DATA": data}, nil, nil},
		"relative PAWL_CONFIG":          {"server: URL\n", map[string]string{"PAWL_TOKEN": "stolen", "PAWL_CONFIG": "pawl.yaml"}, nil, nil},
		"nothing but dots":              {"server: URL\ntokenFile: ..\n", map[string]string{}, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			fill := strings.NewReplacer("URL", l.URL, "ADDR", strings.TrimPrefix(l.URL, "http://")).Replace
			dir := folder(t, map[string]string{"pawl.yaml": fill(tt.file)})
			for link, target := range tt.link {
				if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			env := map[string]string{}
			for name, value := range tt.env {
				env[name] = fill(value)
			}
			r := call{dir: dir, env: env}.run(t, append([]string{"get", "jobs"}, tt.flags...)...)
			r.expect(t, pawl.ExitUsage, "pawl.yaml")
			if told := l.told(); told != "" {
				t.Errorf("the server of the file was asked, with %q", told)
			}
			if strings.Contains(r.stderr+r.stdout, "stolen") {
				t.Errorf("the secret is told:\n%s", r.stderr)
			}
		})
	}
}

func TestTokenGoesToTheServerThatWasNamedWithIt(t *testing.T) {
	outside := folder(t, map[string]string{"token": "mine\n", "data/admin.token": "mine\n"})
	tests := map[string]struct {
		file  string
		env   map[string]string
		flags []string
		want  string
	}{
		"both by variables":           {"", map[string]string{"PAWL_URL": "URL", "PAWL_TOKEN": "mine"}, nil, "mine"},
		"variable and flag":           {"", map[string]string{"PAWL_TOKEN": "mine"}, []string{"--server", "URL"}, "mine"},
		"the variable wins":           {"server: http://nowhere.invalid\n", map[string]string{"PAWL_URL": "URL", "PAWL_TOKEN": "mine"}, nil, "mine"},
		"listen address by variable":  {"", map[string]string{"PAWL_ADDR": "ADDR", "PAWL_TOKEN": "mine"}, nil, "mine"},
		"config file that was named":  {"server: URL\n", map[string]string{"PAWL_TOKEN": "mine"}, []string{"--config", "pawl.yaml"}, "mine"},
		"token file of a named one":   {"server: URL\ntokenFile: " + outside + "/token\n", nil, []string{"--config", "pawl.yaml"}, "mine"},
		"data folder of a named one":  {"addr: ADDR\ndata: " + outside + "/data\n", nil, []string{"--config", "pawl.yaml"}, "mine"},
		"folder with all of its own":  {"addr: ADDR\ndata: own\n", nil, nil, "folder"},
		"folder with the usual data":  {"addr: ADDR\n", nil, nil, "usual"},
		"token file in the folder":    {"server: URL\ntokenFile: own/admin.token\n", nil, nil, "folder"},
		"data of the file, server by": {"data: " + outside + "/data\n", map[string]string{"PAWL_URL": "URL"}, nil, "mine"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			fill := strings.NewReplacer("URL", l.URL, "ADDR", strings.TrimPrefix(l.URL, "http://")).Replace
			dir := folder(t, map[string]string{"pawl.yaml": fill(tt.file), "own/admin.token": "folder", ".pawl/admin.token": "usual"})
			env := map[string]string{}
			for name, value := range tt.env {
				env[name] = fill(value)
			}
			flags := []string{"get", "jobs"}
			for _, f := range tt.flags {
				flags = append(flags, fill(f))
			}
			call{dir: dir, env: env}.run(t, flags...).expect(t, pawl.ExitDone)
			if l.told() != "Bearer "+tt.want {
				t.Errorf("told %q, want %q", l.told(), tt.want)
			}
		})
	}
}

func TestFileThatHoldsNoTokenIsNotSent(t *testing.T) {
	for name, text := range map[string]string{"a key": "-----BEGIN KEY-----\nabc\n-----END KEY-----\n", "much": strings.Repeat("x", maxToken+1), "other letters": "pässwort"} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			r := call{dir: folder(t, map[string]string{"token": text})}.run(t, "get", "jobs", "--server", l.URL, "--token-file", "token")
			r.expect(t, pawl.ExitUsage, "--token-file", "holds no token")
			if l.told() != "" || strings.Contains(r.stderr, "BEGIN") || strings.Contains(r.stderr, "xxxx") {
				t.Errorf("told %q and\n%s", l.told(), r.stderr)
			}
		})
	}
}
