package web

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

func TestSourcePagesShowRowsAndWhatDidNotFit(t *testing.T) {
	both(t, func(r *rig) {
		r.fetching("prices", "/prices")
		why := r.waitLane("source", "prices", "Idle")
		b := r.signedIn(r.admin)
		b.get("/").want(http.StatusOK).has("lane-source-prices", "Fetched 3 rows, 2 new, 1 rejected", "Every hour")
		b.get("/sources/prices").want(http.StatusOK).has("&lt;b&gt;one&lt;/b&gt;", "just now", "no limit", "No run is active").hasNot("<b>one", "_run")
		b.get("/sources/prices/rows").want(http.StatusOK).has("three", "_run").hasNot("<b>one")
		b.get("/sources/prices/rejects").want(http.StatusOK).has("row 2 of page 1", "&lt;i&gt;no number").hasNot("<i>no")
		b.get("/sources/prices/runs").want(http.StatusOK).has("1 page · 3 rows read · 2 new · 1 rejected")
		b.get("/runs/"+why.Recent[0].ID).want(http.StatusOK).has("3 rows read", `href="/sources/prices"`)
		b.get("/runs").want(http.StatusOK).has(`href="/sources/prices"`)
		r.ask("PUT", "/api/v1/sources/prices", map[string]any{
			"url": r.outside + "/prices", "table": "prices", "schedule": "daily",
			"response": map[string]any{"dataPath": "items", "fields": []any{map[string]any{"source": "id", "target": "id", "type": "integer"}, map[string]any{"source": "name", "target": "name"}}},
			"write":    map[string]any{"key": []any{"id"}},
		}, nil)
		b.get("/sources/prices/versions").want(http.StatusOK).has("Version 2", "compared with version 1", `class="diff-add"`, `class="diff-del"`)
		b.get("/sources/prices/versions?show=9").want(http.StatusOK).has("Version not found")
	})
}

func TestSourceIsRunPausedResumedAndReset(t *testing.T) {
	r := onSQLite(t)
	r.fetching("prices", "/prices")
	r.waitLane("source", "prices", "Idle")
	b := r.signedIn(r.admin)
	b.post("/sources/prices/pause", "back", "/sources/prices").want(http.StatusSeeOther)
	b.get("/sources/prices").want(http.StatusOK).has("Paused. Nothing more will be fetched.", "Resume", "Stopped").hasNot("Run now")
	b.post("/sources/prices/run", "back", "/sources/prices").want(http.StatusConflict).has(`role="alert"`, "Latest rows")
	b.get("/?status=Stopped&kind=source").want(http.StatusOK).has("lane-source-prices")
	b.post("/sources/prices/resume", "back", "/sources/prices").want(http.StatusSeeOther)
	b.post("/sources/prices/run", "back", "/sources/prices").want(http.StatusSeeOther)
	r.fetching("busy", "/busy")
	r.eventually("it failed", func() bool { return strings.Contains(b.get("/sources/busy").body, "Failures") })
	b.get("/sources/busy").want(http.StatusOK).has("last attempt failed", "never fetched", "No rows yet")
	b.post("/sources/busy/reset", "all", "yes", "back", "/sources/busy").want(http.StatusSeeOther)
	b.get("/sources/busy").want(http.StatusOK).has("Reset. It fetches everything again.")
	viewer := r.signedIn(r.token("vera", "viewer", "read"))
	viewer.get("/sources/prices").want(http.StatusOK).hasNot("Run now", "Reset")
	viewer.post("/sources/prices/pause", "back", "/").want(http.StatusForbidden)
}

// The timeline and the counts of lanes of all kinds.
func TestTimelineDrawsEveryKind(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("does", "put", "o-1")
		r.waitDone("does")
		r.fetching("prices", "/prices")
		r.waitLane("source", "prices", "Idle")
		id := r.schedule("poems", "poet", "*/2 * * * *")
		r.waitLane("schedule", id, "Idle")
		b := r.signedIn(r.admin)
		for _, span := range []string{"6m", "30m", "6h", "24h", "6d", "", "no"} {
			p := b.get("/timeline?span="+span).want(http.StatusOK).has("line-workflow-does", "line-source-prices", "line-schedule-"+id, "mark-good")
			if n := strings.Count(p.body, "<rect"); n < 4 || n > 700 {
				t.Errorf("%s: %d marks", span, n)
			}
		}
		b.get("/timeline?span=6m").has("mark-next")
		b.get("/timeline?kind=source").want(http.StatusOK).has("prices").hasNot("poems")
		b.get("/?kind=schedule").want(http.StatusOK).has("poems").hasNot("lane-source")
		viewer := r.signedIn(r.token("vera", "viewer", "read"))
		viewer.get("/timeline").want(http.StatusOK).has("prices").hasNot("poems")
		viewer.get("/").want(http.StatusOK).has("prices").hasNot("poems")
		viewer.get("/schedules/" + id).want(http.StatusNotFound)
	})
}

// Pages show runs that are folded as many, from the first to the last.
func TestPagesShowFoldedRunsAsMany(t *testing.T) {
	both(t, func(r *rig) {
		r.fetching("prices", "/prices")
		why := r.waitLane("source", "prices", "Idle")
		id := why.Recent[0].ID
		// It began before what the timeline shows.
		err := r.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Exec(ctx, `update runs set folded_at = 1, created_at = $2, started_at = $2, ended_at = $2, through_at = $3, run_count = 1234 where id = $1`, id,
				time.Now().Add(-20*time.Hour).UnixMilli(), time.Now().Add(-2*time.Hour).UnixMilli())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b := r.signedIn(r.admin)
		for _, page := range []string{"/runs", "/sources/prices/runs"} {
			b.get(page).want(http.StatusOK).has("1,234 runs that found nothing to do", `<div>to <time`, "2 h ago")
		}
		b.get("/runs/"+id).want(http.StatusOK).has("Stands for", "1,234 runs that found nothing to do, the last")
		b.get("/timeline?span=6h").want(http.StatusOK).has("1,234 runs · found nothing to do", "/runs/"+id)
	})
}
