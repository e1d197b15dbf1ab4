// Command page measures pages and lists on SQLite and PostgreSQL that have as
// many lanes and runs as years of use leave behind.
//
// usage: go run ./page [-runs N] [-at URL] [-fill] [-kept FILE [-most DURATION]] [-plans FILE] [-quick] [-pg URL] [-only SQLite|PostgreSQL] [-dir DIR] [-out FILE] [-cpuprofile FILE]
//
// Without -pg (or PAWL_TEST_POSTGRES) only SQLite is measured. To measure in pieces,
// fill a database with -at and -fill, and then give -at and -kept again and again
// until the report has every address.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/internal/bulk"
	"github.com/pawlrun/pawl/internal/script"
)

// goal is how long a page or a list may take.
const goal = 200 * time.Millisecond

const note = "p50 and p99 are what a client waits, processor is what the server and the client, which are one process, use for a request; PostgreSQL's own " +
	"time is not in it. Pages are those of the database that the statements of one request look at, in memory or on the disk: they are " +
	"the same on a busy machine. A tenth of all runs is in one lane of each kind, which is the one that is asked for. The goal is a p99 of 200 ms."

func main() {
	script.WorkerMain() // scripts run in processes of this same program
	runs := flag.Int("runs", 1_000_000, "so `many` runs, and everything else in proportion")
	at := flag.String("at", "", "measure the database with this `URL`, which is filled if it was not, and is not removed")
	fill := flag.Bool("fill", false, "end when the database is filled")
	kept := flag.String("kept", "", "keep what is measured in this `file`, and do not measure again what it has")
	most := flag.Duration("most", time.Hour, "measure no further address after this `time`")
	plans := flag.String("plans", "", "write the plans of dear statements to this `file`")
	measure.Main("Pages", "bench-pages", func(ctx context.Context, r *measure.Report, p measure.Place, quick bool) error {
		s := sized(*runs, quick)
		s.at, s.fill, s.kept, s.all, s.plans = *at, *fill, *kept, *most, *plans
		return all(ctx, r, p, s)
	}, note)
}

// plan is how much is measured.
type plan struct {
	bulk.Size
	times int           // requests of each address
	most  time.Duration // but no longer than this
	at    string        // URL of the database; empty makes one
	fill  bool          // it is only filled
	kept  string        // file of what was measured; empty keeps nothing
	all   time.Duration // for all addresses together
	plans string        // file of plans; empty writes none
}

func sized(runs int, quick bool) plan {
	switch {
	case quick:
		return plan{Size: bulk.Size{Lanes: 500, Runs: 20_000}, times: 20, most: 5 * time.Second}
	case runs > 1_000_000:
		return plan{Size: bulk.Size{Lanes: 10_000, Runs: runs}, times: 100, most: 5 * time.Second}
	}
	return plan{Size: bulk.Size{Lanes: 10_000, Runs: runs}, times: 200, most: 20 * time.Second}
}

func all(ctx context.Context, r *measure.Report, p measure.Place, s plan) error {
	h, err := open(ctx, r, p, s)
	if err != nil || s.fill {
		return err
	}
	defer h.close()
	r.Line("runs", "%d", s.Runs)
	r.Line("start-up", "%.0f ms", measure.MS(h.started))
	if r.Line("size of the database", "%.1f GB", float64(h.bytes)/1e9); h.bytes == 0 {
		return fmt.Errorf("the database is empty")
	}
	meter, err := bulk.NewMeter(ctx, h.cfg.Database)
	if err != nil {
		return err
	}
	defer meter.Close()
	plans := io.Writer(io.Discard)
	if s.plans != "" {
		f, err := os.OpenFile(s.plans, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // only read by people
		plans = f
	}
	known, err := readKept(s.kept)
	if err != nil {
		return err
	}
	late, begun := 0, time.Now()
	for _, path := range paths() {
		a, ok := known[path]
		if !ok {
			if time.Since(begun) > s.all {
				return fmt.Errorf("%s is not measured yet: run it again", path)
			}
			if a, err = h.measure(ctx, meter, path, s, plans); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if err := a.keep(s.kept); err != nil {
				return err
			}
		}
		if a.P99 > goal {
			late++
		}
		r.Line("`"+path+"`", "%.1f / %.1f ms, processor %.1f ms, %d statements, %d pages", measure.MS(a.P50), measure.MS(a.P99), measure.MS(a.Used), a.Statements, a.Pages)
	}
	r.Line(fmt.Sprintf("addresses with a p99 over %s, of %d", goal, len(paths())), "%d", late)
	return nil
}

// paths are what is asked for: pages, and below them lists of the API.
func paths() []string {
	schedule, inTurn := bulk.ScheduleID(1), bulk.ScheduleID(2)
	flow, source := bulk.HotWorkflow, bulk.HotSource
	return []string{
		"/", "/?status=Idle", "/?status=Needs+attention", "/?q=w1000", "/?kind=schedule", "/timeline", "/timeline?span=6d&kind=schedule", "/approvals",
		"/workflows/" + flow, "/workflows/" + flow + "?status=pending", "/workflows/" + flow + "?status=skipped", "/workflows/" + flow + "/outputs",
		"/workflows/" + flow + "/runs", "/workflows/" + flow + "/why", "/sources/" + source, "/sources/" + source + "/runs", "/sources/" + source + "/rejects",
		"/schedules/" + schedule, "/schedules/" + schedule + "/runs", "/schedules/" + inTurn + "/why", "/grants",
		"/runs", "/runs?kind=source", "/runs?kind=source&status=crashed", "/runs?lane=" + flow, "/runs?lane=nowhere", "/runs/" + bulk.RunID(10), "/jobs", "/jobs?state=failed", "/audit", "/tokens",
		"/api/v1/lanes", "/api/v1/lanes?limit=500", "/api/v1/workflows", "/api/v1/sources", "/api/v1/schedules", "/api/v1/timeline", "/api/v1/timeline?limit=500",
		"/api/v1/runs", "/api/v1/runs?limit=500", "/api/v1/runs?kind=schedule", "/api/v1/runs?lane=" + flow + "&status=cancelled", "/api/v1/runs?lane=nowhere", "/api/v1/runs?lane=w103999&status=committed",
		"/api/v1/jobs?task=log", "/api/v1/workflows/" + flow + "/inputs?status=orphaned", "/api/v1/workflows/" + flow + "/events?status=skipped",
		"/api/v1/schedules/" + schedule + "/slots?status=error", "/api/v1/billing/accounts", "/api/v1/billing/receipts?all=true", "/api/v1/billing/receipts?schedule=" + schedule,
		"/api/v1/lanes/workflow/" + flow + "/why?at=" + time.Now().Add(-100*time.Hour).UTC().Truncate(24*time.Hour).Format(time.RFC3339), "/api/v1/storage", "/storage",
		"/metrics",
	}
}
