package web

import (
	"net/http"
	"testing"
)

// C-79: the plan says which slots the grant does not cover, and a grant can be
// chosen that does.
func TestBackfillPageTellsWhatTheGrantDoesNotCover(t *testing.T) {
	both(t, func(r *rig) {
		id := r.schedule("poems", "poet", "0 9 * * *")
		r.ask("PATCH", "/api/v1/schedules/"+id, map[string]any{"graphId": "x:asks"}, nil)
		b := r.signedIn(r.admin)
		back, form := "/schedules/"+id+"/backfills", []string{"from", "2026-01-01T00:00", "to", "2026-01-04T00:00", "perMinute", "600"}
		b.get(back).want(http.StatusOK).hasNot(`name="grantId"`)
		path := b.post("/schedules/"+id+"/backfill", append(form, "back", back)...).want(http.StatusSeeOther).header.Get("Location")
		b.get(path).want(http.StatusOK).has("3 slots of <code>x:poet</code> would be skipped: the grant does not cover the graph", "plan the backfill again", "the schedule’s grant", "3 slots are older than the schedule")
		var made grantView
		r.ask("POST", "/api/v1/grants", map[string]any{"graphs": []string{"x:asks", "x:poet"}}, &made)
		b.get(back).want(http.StatusOK).has(`<option value="`+made.ID+`">x:asks, x:poet`, "The schedule’s grant")
		path = b.post("/schedules/"+id+"/backfill", append(form, "grantId", made.ID, "back", back)...).want(http.StatusSeeOther).header.Get("Location")
		b.get(path).want(http.StatusOK).has("<code>"+made.ID+"</code>", "Run 3 slots").hasNot("would be skipped")
	})
}
