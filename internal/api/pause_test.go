package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Lanes of all kinds are paused for a time, say so to everybody who may see them, and
// continue by themselves; nonsense is refused with its place and what to write.
func TestLanesArePausedUntilATime(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("hello", producing("hello", "return {}"))
		r.apply("prices", r.fetching("/prices"))
		r.waitRuns("?kind=source&lane=prices&status=committed", 1)
		paths := map[string]string{"workflow": "/api/v1/workflows/hello", "source": "/api/v1/sources/prices", "schedule": "/api/v1/schedules/" + r.schedule(yearly("poem", "http:poet")).ID}
		names := map[string]string{"workflow": "hello", "source": "prices", "schedule": "poem"}
		viewer := r.token("vic", userstore.RoleViewer, "*")
		for kind, path := range paths {
			for body, pointer := range map[string]string{
				`{"until":"yesterday"}`: "/until", `{"until":"2001-01-01T00:00:00Z"}`: "/until", `{"until":"-2h"}`: "/until", `{"until":"0s"}`: "/until", `{"until":"2026-12-24"}`: "/until",
				`{"until":"11000d"}`: "/until", `{"until":"9999999999999999d"}`: "/until", `{"until":"2100-01-01T00:00:00Z"}`: "/until", `{"until":7}`: "/until", `{"until":"2h","note":"a\nb"}`: "/note",
				`{"note":"` + strings.Repeat("é", 501) + `"}`: "/note", `{"til":"2h"}`: "/til",
			} {
				p := r.do("POST", path+"/pause", body).problem(http.StatusUnprocessableEntity, "invalid")
				if len(p.Errors) == 0 || p.Errors[0].Pointer != pointer {
					t.Errorf("%s %s: %+v", kind, body, p)
				}
			}
			r.as(viewer, "POST", path+"/pause", `{"until":"2h"}`).problem(http.StatusForbidden, "forbidden")
			if y := r.whyAt(kind, names[kind], ""); y.Paused || y.Pause != nil {
				t.Errorf("%s: what was refused paused it: %+v", kind, y.Pause)
			}
			var now struct{ Pause *client.Pause }
			r.do("POST", path+"/pause", `{"until":"90m","note":" <b>moving</b> "}`).want(http.StatusOK).into(&now)
			if p := now.Pause; p == nil || p.By != "admin" || p.Note != "<b>moving</b>" || time.Until(p.Until.Time) > 91*time.Minute || time.Until(p.Until.Time) < 88*time.Minute {
				t.Errorf("%s: %+v", kind, p)
			}
			y := r.whyAt(kind, names[kind], "")
			if y.Status != "Stopped" || y.IssueCode != "paused" || y.Pause == nil || !strings.HasSuffix(string(y.Issue), "<b>moving</b>. It then continues by itself.") || !strings.HasPrefix(string(y.Do), "pawl resume "+kind) {
				t.Errorf("%s: %+v %s", kind, y.Lane, y.Do)
			}
			var page client.Page[json.RawMessage]
			r.do("GET", "/api/v1/"+kind+"s", nil).want(http.StatusOK).into(&page)
			if len(page.Items) != 1 || !strings.Contains(string(page.Items[0]), `"pause":{"since"`) {
				t.Errorf("%s: the list: %s", kind, page.Items)
			}
			r.do("POST", path+"/run", nil).problem(http.StatusConflict, "paused")
			r.do("POST", path+"/pause", map[string]any{"until": time.Now().Add(300 * time.Millisecond).Format(time.RFC3339Nano)}).want(http.StatusOK)
			r.eventually(kind+" continues", func() bool { y := r.whyAt(kind, names[kind], ""); return !y.Paused && y.Pause == nil })
			if n := r.count(`select count(*) from audit_log where actor = 'pawl' and action = '` + kind + `.resume'`); n != 1 {
				t.Errorf("%s: %d lines", kind, n)
			}
			r.do("POST", path+"/pause", `{"until":"2h"}`).want(http.StatusOK)
			r.do("POST", path+"/resume", nil).want(http.StatusOK)
			if y := r.whyAt(kind, names[kind], ""); y.Paused || y.Pause != nil {
				t.Errorf("%s after resume: %+v", kind, y.Pause)
			}
		}
	})
}
