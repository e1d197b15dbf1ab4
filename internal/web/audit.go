package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// subjectPath is the page of what an entry of the audit log is about; empty if it
// has none. What was deleted is not found there.
func subjectPath(subject string) string {
	kind, key, found := strings.Cut(subject, ":")
	if !found || key == "" || !slices.Contains([]string{"run", "workflow", "source", "schedule", "backfill", "job", "hook"}, kind) {
		return ""
	}
	if kind == "hook" {
		return webhooksPath + "/" + url.PathEscape(key)
	}
	return "/" + kind + "s/" + url.PathEscape(key)
}

type auditPage struct {
	Entries []store.AuditEntry
	Pager   pager
}

const auditPerPage = 50

// showAudit is what people did. It is for administrators: others see what
// belongs to them where it belongs.
func (s *Site) showAudit(w http.ResponseWriter, r *http.Request, v *visit) {
	if !v.may("audit", "admin") {
		s.problem(w, r, &pawl.Error{Code: pawl.CodeForbidden, Msg: "the audit log is for administrators", Hint: "Sign in with an administrator's token."})
		return
	}
	before, err := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64)
	if err != nil || before < 0 {
		before = 0
	}
	entries, err := s.cfg.DB.AuditLog(r.Context(), before, auditPerPage+1)
	if err != nil {
		s.problem(w, r, err)
		return
	}
	next := ""
	if len(entries) > auditPerPage {
		entries = entries[:auditPerPage]
		next = strconv.FormatInt(entries[auditPerPage-1].ID, 10)
	}
	f := s.frameFor(r, v, "audit", "Audit log")
	s.show(w, r, "audit.html", f, auditPage{entries, pagerOf(r, next)})
}
