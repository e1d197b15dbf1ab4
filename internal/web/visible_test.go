package web

import (
	"net/http"
	"strings"
	"testing"
	"unicode"
)

// hiding is text that looks like another one: its second half is read backwards,
// has no width, or is a code.
const hiding = "pay \u202e0001\u202c EUR\u200b \u2066x\u2069\u00ad\u3164 \x1b[2J\u009b1m"

// What is approved looks like what is sent: no page carries characters that turn
// text around, are not seen, or control something, wherever they come from.
func TestPagesShowWhatIsHidden(t *testing.T) {
	both(t, func(r *rig) {
		script := strings.ReplaceAll(taking("asks", "ask"), `"Do <b>" + e.messageId + "</b>"`, `e.payload.n`)
		r.ask("PUT", "/api/v1/workflows/asks", map[string]any{"script": script, "filename": "asks.workflow.js"}, nil)
		r.ask("POST", "/api/v1/workflows/asks/events", map[string]any{
			"topic": "t", "messageId": "m", "payload": map[string]any{"n": hiding},
			"input": map[string]any{"source": "shop", "type": "order", "id": "o-1", "title": hiding},
		}, nil)
		asking := r.waitWord("asks", "Needs attention")
		r.deploy("fails", "put")
		b := r.signedIn(r.admin)
		for _, path := range []string{
			"/", "/approvals", "/runs", "/audit", "/timeline", "/workflows/asks", "/workflows/asks/outputs", "/workflows/asks/runs", "/workflows/asks/why",
			"/runs/" + asking.ID, "/?q=" + "%E2%80%AE" + "x", "/nowhere%E2%80%AE",
		} {
			p := b.get(path)
			if p.status != http.StatusOK && p.status != http.StatusNotFound {
				r.t.Fatalf("%s answers %d", path, p.status)
			}
			for _, c := range p.body {
				if unicode.Is(unicode.Bidi_Control, c) || unicode.Is(unicode.Cf, c) || unicode.IsControl(c) && c != '\n' && c != '\t' || c == '\u3164' {
					r.t.Errorf("%s carries %U", path, c)
					break
				}
			}
		}
		b.get("/approvals").want(http.StatusOK).has(`\u202e</span>0001`, `class="hidden-char"`, `\u200b</span>`)
		b.get("/runs/" + asking.ID).want(http.StatusOK).has(`\u202e</span>0001`)
	})
}
