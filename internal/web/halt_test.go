package web

import (
	"net/http"
	"testing"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// Whoever is signed in sees on every page that everything is halted, and those who
// may lift it.
func TestEveryPageTellsOfAHalt(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("takes", "keep")
		admin, viewer := r.signedIn(r.admin), r.signedIn(r.token("vic", userstore.RoleViewer, "*"))
		pages := []string{"/", "/timeline", "/approvals", "/runs", "/jobs", "/webhooks", "/grants", "/tokens", "/workflows/takes", "/workflows/takes/why", "/nothing"}
		for _, path := range pages {
			admin.get(path).hasNot("Everything is halted", "Lift the halt")
		}
		r.ask("PUT", client.HaltPath, map[string]any{"note": "<b>closed</b>"}, nil)
		for _, path := range pages {
			admin.get(path).has("Everything is halted", " by admin", "&lt;b&gt;closed&lt;/b&gt;", `action="/unhalt"`, "Lift the halt")
			p := viewer.get(path)
			p.has("Everything is halted", " by admin")
			p.hasNot("Lift the halt", "<b>closed")
		}
		r.browser().get("/signin").hasNot("halted")
		viewer.post("/unhalt", "back", "/runs").want(http.StatusForbidden).has("Everything is halted")
		admin.post("/unhalt", "back", "/runs").want(http.StatusSeeOther)
		admin.get("/runs").has("The halt is lifted")
		admin.get("/").hasNot("Everything is halted")
	})
}

// The form of a pause has until and why; the pages say both, and the halt since when.
func TestPagesPauseUntil(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("takes", "keep")
		b, viewer := r.signedIn(r.admin), r.signedIn(r.token("vic", userstore.RoleViewer, "*"))
		b.get("/workflows/takes").has("Pause until…", `action="/workflows/takes/pause"`, `name="until"`, `name="note"`)
		viewer.get("/workflows/takes").hasNot("Pause until…")
		b.post("/workflows/takes/pause", "back", "/workflows/takes", "until", "soon").want(http.StatusUnprocessableEntity).has("must be a time (RFC 3339) or a duration")
		b.post("/workflows/takes/pause", "back", "/workflows/takes", "until", " 2h ", "note", "<i>moving</i>").want(http.StatusSeeOther)
		b.get("/workflows/takes").has("It then continues by itself.", "&lt;i&gt;moving&lt;/i&gt;", "Change pause…", "Resume").hasNot("<i>moving")
		b.get("/").has("It then continues by itself.")
		b.get("/workflows/takes/why").has("It does nothing until its pause is over")
		b.post("/workflows/takes/resume", "back", "/workflows/takes").want(http.StatusSeeOther)
		b.get("/workflows/takes").has("Pause until…").hasNot("continues by itself.")
		var h client.Halt
		r.ask("PUT", client.HaltPath, map[string]any{}, &h)
		b.get("/").has("since <time", instant(h.Since)+"</time>").hasNot("ago</time> by admin")
	})
}
