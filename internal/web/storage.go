package web

import (
	"net/http"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/retention"
)

type storagePage struct {
	client.Storage
	Ages []storageAge
}

// storageAge is for how long a kind is kept.
type storageAge struct{ Kind, Age string }

// storageLanes is how many lanes the page shows.
const storageLanes = 50

// showStorage is how large the database is. It names everybody's lanes, so it is
// for administrators.
func (s *Site) showStorage(w http.ResponseWriter, r *http.Request, v *visit) {
	if !v.may("storage", "admin") {
		s.problem(w, r, &pawl.Error{Code: pawl.CodeForbidden, Msg: "storage is for administrators", Hint: "Sign in with an administrator's token."})
		return
	}
	var page storagePage
	if err := s.ask(r.Context(), v, client.StoragePath, nil, &page.Storage); err != nil {
		s.problem(w, r, err)
		return
	}
	tables := page.Tables[:0]
	for _, t := range page.Tables {
		if t.Rows > 0 {
			tables = append(tables, t)
		}
	}
	page.Tables, page.Lanes = tables, page.Lanes[:min(len(page.Lanes), storageLanes)]
	for _, k := range retention.Kinds() {
		page.Ages = append(page.Ages, storageAge{string(k), page.Keep[string(k)]})
	}
	s.show(w, r, "storage.html", s.frameFor(r, v, "storage", "Storage"), page)
}

// daysUntil is how many whole days there are until an instant.
func daysUntil(now time.Time, at client.Instant) int { return int(at.Sub(now).Hours() / 24) }
