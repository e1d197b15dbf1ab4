package cli

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// Every list can be watched: what is not told by events is read again.
func TestEveryListCanBeWatched(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.plural, func(t *testing.T) {
			args := []string{"get", k.plural}
			path := k.path
			if k.below != "" && !k.everywhere {
				args = append(args, "mine")
			}
			first, second := `{"id":"1","name":"first","title":"first"}`, `{"id":"2","name":"second","title":"second"}`
			f := newFake(t, map[string]fakeJSON{})
			f.stream = streamed(`event: workflow` + "\n" + `data: {"workflow":"x"}`)
			list := func(items ...string) fakeJSON { return fakeJSON{200, `{"items":[` + strings.Join(items, ",") + `]}`} }
			if k.below != "" {
				parent := k.parent()
				f.answer["GET "+parent.path] = list(`{"id":"mine","name":"mine"}`)
				f.answer["GET "+parent.path+"/mine"] = fakeJSON{200, `{"id":"mine","name":"mine"}`}
				path = parent.path + "/mine/" + k.below
			}
			f.answer["GET "+path] = list(first)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			p, out, errs := f.call().process(t, append(args, "-w", "-o", "json")...)
			ended := make(chan int, 1)
			go func() { ended <- Run(ctx, p) }()
			out.await(ctx, t, `"first"`)
			if k.watch.subject == nil && k.watch.changed == nil && k.watch.reread == nil {
				f.set("GET "+path, list(second, first))
				out.await(ctx, t, `"second"`)
			}
			cancel()
			if code := <-ended; code != pawl.ExitDone {
				t.Errorf("exit code %d: %s", code, errs)
			}
			if n := strings.Count(out.String(), `"name":"first"`); n != 1 {
				t.Errorf("the first is told %d times:\n%s", n, out)
			}
		})
	}
}

// U4: pawl get lanes -w is the first command that the demo prints.
func TestWatchedLanesTellOfWhatChanges(t *testing.T) {
	lane := func(status, activity, at string) string {
		return `{"kind":"workflow","name":"bills","id":"2","status":"` + status + `","nextAt":"` + at + `","lastActivity":{"text":"` + activity + `","at":"` + at + `"}}`
	}
	list := func(item string) fakeJSON { return fakeJSON{200, `{"items":[` + item + `]}`} }
	f := newFake(t, map[string]fakeJSON{"GET /api/v1/lanes": list(lane("Idle", "Checked", "2026-01-01T00:00:00Z"))})
	f.stream = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("kind") != "workflow,source,schedule,run" {
			t.Errorf("follows %s", r.URL.RawQuery)
		}
		streamed()(w, r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	p, out, _ := f.call().process(t, "get", "lanes", "-w")
	ended := make(chan int, 1)
	go func() { ended <- Run(ctx, p) }()
	out.await(ctx, t, "Idle")
	f.set("GET /api/v1/lanes", list(lane("Idle", "Checked", "2026-01-01T00:00:05Z"))) // that it looked again is no news
	f.await(ctx, "GET /api/v1/lanes", 3)
	f.set("GET /api/v1/lanes", list(lane("Needs attention", "Checked", "2026-01-01T00:00:05Z")))
	out.await(ctx, t, "Needs attention")
	cancel()
	<-ended
	if text := out.String(); strings.Count(text, "bills") != 2 || strings.Count(text, "KIND") != 1 {
		t.Errorf("got:\n%s", text)
	}
}
