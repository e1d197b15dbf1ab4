package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// upstream is an API with two pages, of which the second has a row that does
// not fit. It wants a key.
func upstream(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "sesame" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		body := `{"items":[{"id":1,"close":2.5},{"id":2,"close":3}],"next":"two"}`
		if r.URL.Query().Get("cursor") == "two" {
			body = `{"items":[{"id":3,"close":"n/a"}],"next":null}`
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func upstreamSource(url string) string {
	return "kind: source\nname: prices\nurl: " + url + "/prices\ntable: prices\nschedule: daily\ncursorPagination: {cursorParam: cursor, nextCursorPath: next}\n" +
		"response:\n  dataPath: items\n  fields: [{source: id, target: id, type: integer}, {source: close, target: close, type: number}]\n"
}

func TestSourceIsTriedWithoutAServer(t *testing.T) {
	s := upstream(t)
	domain := strings.TrimPrefix(s.URL, "http://")
	c := call{env: map[string]string{"PRICES_KEY": "sesame"}, dir: folder(t, map[string]string{
		"prices.yaml":    upstreamSource(s.URL),
		"keys/p.yaml":    "kind: provider\ndomain: " + domain + "\napiKey: ${PRICES_KEY}\n",
		"two.yaml":       upstreamSource(s.URL) + "---\n" + strings.Replace(upstreamSource(s.URL), "name: prices", "name: other", 1),
		"bad.yaml":       strings.Replace(upstreamSource(s.URL), "table:", "tabel:", 1),
		"schedule.yaml":  poetYAML,
		"empty/note.txt": "x",
	})}
	with := []string{"--allow-private", "127.0.0.0/8", "--provider-dir", "keys"}
	r := c.run(t, append([]string{"test", "prices.yaml"}, with...)...)
	r.expect(t, pawl.ExitDone)
	for _, w := range []string{"Source prices, with nothing written:", "page 1: GET " + s.URL + "/prices -> 200, 2 rows", "page 2: GET", "ID   CLOSE\n1    2.5\n2    3\n", "2 shown; 1 rejected", `row 1: `, "close"} {
		if !strings.Contains(r.stdout, w) {
			t.Errorf("lacks %q:\n%s", w, r.stdout)
		}
	}
	if strings.Contains(r.stdout+r.stderr, "sesame") {
		t.Errorf("a key is shown:\n%s%s", r.stdout, r.stderr)
	}
	var told triedSource
	r = c.run(t, append([]string{"test", "prices.yaml", "-o", "json", "--pages", "1"}, with...)...)
	if err := json.Unmarshal([]byte(r.stdout), &told); err != nil || r.code != pawl.ExitDone || !told.More || len(told.Rows) != 2 || told.Rows[0]["close"] != 2.5 || len(told.Requests) != 1 {
		t.Errorf("json: %v, %+v", err, r)
	}

	c.run(t, "test", "prices.yaml", "--allow-private", "127.0.0.0/8").expect(t, pawl.ExitFailed, "source prices cannot be fetched", "401")
	r = c.run(t, "test", "prices.yaml", "--allow-private", "127.0.0.0/8", "-o", "json")
	if r.code != pawl.ExitFailed || !strings.Contains(r.stdout, `"class": "auth"`) {
		t.Errorf("failed json: %+v", r)
	}
	c.run(t, "test", "prices.yaml", "--provider-dir", "keys").expect(t, pawl.ExitFailed, "--allow-private")
	c.run(t, "test", "two.yaml").expect(t, pawl.ExitUsage, "two.yaml has 2 sources", "--name: prices, other")
	c.run(t, append([]string{"test", "two.yaml", "--name", "other"}, with...)...).expect(t, pawl.ExitDone)
	c.run(t, "test", "two.yaml", "--name", "third").expect(t, pawl.ExitNotFound, `there is no source "third"`)
	c.run(t, "test", "bad.yaml").expect(t, pawl.ExitFailed, `bad.yaml:4:1: unknown field "tabel"`)
	c.run(t, "test", "schedule.yaml").expect(t, pawl.ExitFailed, "there is no source in schedule.yaml")
	c.run(t, "test", "absent.yaml").expect(t, pawl.ExitNotFound)
	c.run(t, "test", "prices.yaml", "--provider", "absent.yaml").expect(t, pawl.ExitFailed, "absent.yaml")
}
