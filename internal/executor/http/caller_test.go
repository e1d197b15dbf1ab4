package httpexec

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

const callerKey = "vk-31415926"

func asCaller(t *testing.T) runner.Run {
	t.Helper()
	key, err := runner.NewKey("TEAM_KEY", callerKey)
	if err != nil {
		t.Fatal(err)
	}
	r := poet()
	r.Caller = runner.Caller{AccountID: "b1", Key: key}
	return r
}

// C-03, C-35: a graph gets the key of its caller in the header that the
// definition names, beside headers of its own; without the setting the key goes
// nowhere. It is not in the body and not in what is remembered.
func TestCallerKeyIsSentWhereTheDefinitionSays(t *testing.T) {
	var body string
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body, header = string(raw), r.Header
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	defer server.Close()
	for setting, want := range map[string]string{
		"callerKey: {header: X-Api-Key}": "X-Api-Key", "timeout: 1s": "",
	} {
		text := "headers: {Authorization: 'Bearer ${TOKEN}'}\n"
		if strings.HasPrefix(setting, "callerKey") {
			text += setting + "\n"
		}
		s := settingsOf(t, text+"graphs: {poet: {url: '"+server.URL+"'}}\n", "127.0.0.0/8")
		p, ok := New(s)
		if s.Unknown(); !ok || len(s.Fields()) > 0 {
			t.Fatal(s.Fields())
		}
		remembered := ""
		result, err := p.Run(t.Context(), asCaller(t), func(e runner.Event) error { remembered += string(e.Remote) + e.Text; return nil })
		if err != nil || !result.OK || !strings.Contains(body, `"billingAccountId":"b1"`) || header.Get("Authorization") != "Bearer "+token {
			t.Errorf("%s: %+v, %v, %s, %v", setting, result, err, body, header)
		}
		if strings.Contains(body+remembered, callerKey) {
			t.Errorf("%s: the key is in %s or %s", setting, body, remembered)
		}
		if want != "" && header.Get(want) != callerKey {
			t.Errorf("%s: %s is %q", setting, want, header.Get(want))
		}
		for name, values := range header {
			if has := strings.Contains(strings.Join(values, ","), callerKey); has != (name == want) {
				t.Errorf("%s: %s is %v", setting, name, values)
			}
		}
	}
}

// A header of a graph must not stand in the way of the key.
func TestCallerKeyCollidesWithAHeaderOfAGraph(t *testing.T) {
	s := settingsOf(t, "callerKey: {}\ngraphs: {poet: {url: 'https://agents.example.com', headers: {authorization: x}}}\n")
	_, ok := New(s)
	if faults := s.Fields(); ok || len(faults) != 1 || !strings.HasPrefix(faults[0].String(), "x.yaml:2:") || !strings.Contains(faults[0].String(), "that of callerKey") {
		t.Errorf("%v", faults)
	}
}
