package web

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// mostOfAList is how many statements a list may take, however many lanes it has.
const mostOfAList = 40

// A list reads its page by sets: more lanes on a page are not more statements.
func TestStatementsOfAListDoNotGrowWithItsPage(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, address string) {
		r := newRig(t, address)
		r.filled(bulk.Size{Lanes: 1500, Runs: 20_000})
		count := func(path string) int {
			r.readAs(r.admin, path) // what is read once for all
			least := 0
			for i := range 3 { // whatever else the process does is counted, too
				n := r.countSets(r.asked.during(func() { r.readAs(r.admin, path) }))
				if i == 0 || n < least {
					least = n
				}
			}
			return least
		}
		for _, path := range []string{
			"/api/v1/lanes?", "/api/v1/lanes?kind=workflow", "/api/v1/lanes?kind=source", "/api/v1/lanes?kind=schedule",
			"/api/v1/workflows?", "/api/v1/sources?", "/api/v1/schedules?",
		} {
			few, many := count(path+"&limit=50"), count(path+"&limit=500")
			t.Logf("%s: %d statements for 50, %d for 500", path, few, many)
			if few == 0 {
				t.Errorf("%s asks the database nothing", path)
			}
			if many > mostOfAList || many > few+few/2+5 {
				t.Errorf("%s has %d statements for 50 lanes and %d for 500", path, few, many)
			}
		}
		browser := r.signedIn(r.admin)
		for path, most := range map[string]int{"/": 60, "/timeline": 60, "/?kind=schedule": mostOfAList} {
			r.pageAs(browser, path)
			asked := r.asked.during(func() { r.pageAs(browser, path) })
			n := r.countSets(asked)
			t.Logf("%s: %d statements", path, n)
			if n > most {
				t.Errorf("%s has %d statements, at most %d are allowed", path, n, most)
			}
		}
	})
}

// countSets counts statements. Those that PostgreSQL plans for one value each, because
// they want the first few of an order, travel together and count once for each text.
func (r *rig) countSets(asked []statement) (n int) {
	seen := map[string]bool{}
	for _, s := range asked {
		if r.db.Name() == "sqlite" || !strings.Contains(s.sql, "limit $") || !seen[s.sql] {
			n++
		}
		seen[s.sql] = true
	}
	return n
}

// What a list says of a lane, which it reads together with others, is what is said of
// it when it is read by itself.
func TestAListTellsOfEachLaneWhatItTellsByItself(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, address string) {
		r := newRig(t, address)
		r.filled(bulk.Size{Lanes: 120, Runs: 6000})
		issues := map[string]int{}
		for _, k := range r.site.cfg.Kinds {
			page, _, err := k.List(t.Context(), lane.Query{Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			for _, listed := range page {
				one, _, err := k.List(t.Context(), lane.Query{Text: listed.Name, Limit: 200})
				if err != nil {
					t.Fatal(err)
				}
				alone := lane.Lane{}
				for _, l := range one {
					if l.Key == listed.Key {
						alone = l
					}
				}
				listed.NextAt, alone.NextAt = listed.NextAt.Truncate(time.Hour), alone.NextAt.Truncate(time.Hour)
				if !reflect.DeepEqual(listed, alone) {
					t.Errorf("%s %s is listed as\n%+v\nand by itself\n%+v", k.Kind(), listed.Name, listed, alone)
				}
				issues[strings.TrimSpace(string(k.Kind())+" "+string(listed.State)+" "+string(listed.Issue))]++
			}
		}
		t.Log(issues)
	})
}
