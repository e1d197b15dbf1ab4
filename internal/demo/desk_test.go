package demo

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestDeskAnswersAsPlannedAndRemembers(t *testing.T) {
	d, err := openDesk(t.Context(), silent)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	defer http.DefaultClient.CloseIdleConnections()
	d.plan("/a", reply{status: 500}, reply{status: 200, after: 5 * time.Millisecond})
	for i, want := range []int{500, 200, 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/a", strings.NewReader(`{"n":1}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("answer %d is %d, want %d", i, resp.StatusCode, want)
		}
	}
	visits := d.seen("/a")
	if len(visits) != 3 || visits[0].status != 500 || visits[0].body != `{"n":1}` || visits[1].to.Sub(visits[1].from) < 5*time.Millisecond {
		t.Errorf("got %+v", visits)
	}
	if err := checkVisits(visits, 3); err != nil {
		t.Error(err)
	}
}

func TestVisitsThatBreakAPromiseAreFound(t *testing.T) {
	for name, visits := range map[string][]visit{
		"too few":     {{key: "a"}},
		"too many":    {{key: "a"}, {key: "a"}, {key: "a"}},
		"another key": {{key: "a"}, {key: "b"}},
		"no key":      {{}, {}},
	} {
		if checkVisits(visits, 2) == nil {
			t.Errorf("%s was not found", name)
		}
	}
}
