package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// A folder may name a calendar before the file that has it. A schedule that ends
// after three slots runs three, whoever kills the server meanwhile.
func TestCalendarsAndLimitsOfAServedFolder(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, database string) {
		p := newPoet(t)
		folder := t.TempDir()
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("a.yaml", "kind: schedule\nname: three\ngraph: http:poet\ninterval: 1s\nmaxRuns: 3\nexcept: [\"calendar:holidays\"]\n---\n"+
			"kind: schedule\nname: yearly\ngraph: http:poet\ncron: [\"0 0 1 1 *\", \"0 0 2 1 *\"]\nfrom: \"2099-01-01\"\nexcept: [\"calendar:holidays\"]\n")
		write("z.yaml", "kind: calendar\nname: holidays\ndays: [\"2099-01-01\"]\n")
		s := serveWith(t, database, p, folder)
		s.eventually("the first slot", func() bool { return p.slots() > 0 })
		s.kill()
		s.start()
		next := func() time.Time {
			var list struct {
				Items []struct {
					Begun     int
					NextRunAt time.Time
				}
			}
			s.call("GET", "/api/v1/schedules?name=yearly", nil, &list)
			if len(list.Items) != 1 {
				return time.Time{}
			}
			return list.Items[0].NextRunAt
		}
		if got := next(); !got.Equal(time.Date(2099, 1, 2, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("the next one is at %v", got)
		}
		s.eventually("the last slot", func() bool {
			var list struct {
				Items []struct {
					Begun     int
					NextRunAt *time.Time
				}
			}
			s.call("GET", "/api/v1/schedules?name=three", nil, &list)
			return len(list.Items) == 1 && list.Items[0].Begun == 3 && list.Items[0].NextRunAt == nil
		})
		write("z.yaml", "kind: calendar\nname: holidays\ndays: [\"2099-01-01\", \"2099-01-02\"]\n")
		s.eventually("the new calendar", func() bool { return next().Year() == 2100 })
		if n := p.slots(); n != 3 {
			t.Errorf("%d slots ran", n)
		}
	})
}
