package simulate

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/ledger"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/schedule"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/tool"
	"github.com/pawlrun/pawl/internal/workflow"
)

// tellPeople keeps what people are told where it is committed together with what
// it tells of.
func tellPeople(ctx context.Context, tx *store.Tx, n lane.Notice) error {
	action := "told." + n.What
	if n.Issue == run.IssueExpectation {
		action = "notice." + n.What
	}
	return tx.Audit(ctx, "tester", action, string(n.Kind)+":"+n.Key, map[string]string{"issue": string(n.Issue), "text": n.Text, "run": n.RunID})
}

// reader is a process that only answers people: what it says is held against the rows.
func (w *world) reader() (lane.Kinds, error) {
	log := slog.New(slog.DiscardHandler)
	tools, err := tool.NewSet(tool.Named{Name: "desk", Type: "test", Connection: deskOf{w.desk, nil}})
	if err != nil {
		return nil, err
	}
	client, err := outbound.New(outbound.Config{})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	db, book := w.observer, ledger.New(ledger.Config{Holdings: map[pawl.Kind]ledger.Holdings{pawl.KindWorkflow: workflow.Holdings{}}})
	workflows, err := workflow.New(workflow.Options{DB: db, Ledger: book, Scripts: goScripts{}, Tools: tools, Log: log})
	if err != nil {
		return nil, err
	}
	calls := quota.NewBook(db, nil, client, log)
	sources, err := source.New(source.Options{DB: db, Ledger: book, Fetcher: fetch.New(fetch.Options{Client: client, Book: calls, Log: log}), Book: calls, Log: log, Spool: w.spool})
	if err != nil {
		return nil, err
	}
	executions, err := execution.New(execution.Config{DB: db, Graphs: graphsOf{w.graph, nil}, Node: "reader", Log: log})
	if err != nil {
		return nil, err
	}
	schedules, err := schedule.New(schedule.Options{DB: db, Ledger: book, Executions: executions, Grants: grant.Service{}, Log: log})
	return lane.Kinds{workflows, sources, schedules}, err
}

// checkTold holds what people see of each lane, and what they were told, against the
// rows.
func (w *world) checkTold() {
	if w.readers == nil {
		var err error
		if w.readers, err = w.reader(); err != nil {
			w.fail("nobody can answer people: %v", err)
			return
		}
	}
	for _, row := range w.rows(`select kind||'', name||'', state||'', coalesce(cause, '')||'', lane||'', coalesce(issue, '')||'' from lanes`) {
		k, ok := w.readers.Get(pawl.Kind(row[0]))
		if !ok {
			continue
		}
		v := lane.Viewer{}
		if w.calendar != nil {
			v.UserID = w.calendar.owner
		}
		y, err := k.Why(context.Background(), v, row[1], time.Time{})
		if err != nil {
			w.fail("why %s: %v", row[0], err)
			continue
		}
		w.checkWhy(row, &y)
	}
	w.checkNoticesOfLanes()
}

// checkWhy holds that a lane is as people see it.
func (w *world) checkWhy(row []string, y *lane.Why) {
	kind, state := row[0], row[2]
	needed := y.State == run.NeedsAttention && y.Issue != run.IssueExpectation
	under := y.State == run.Running && y.Issue == run.IssueNone // its row tells how it stands when it is not
	if !needed && !under {                                      // nor is it written between two runs
		under = len(w.rows(`select id||'' from jobs where lane like $1 and run_at <= $2 limit 1`, kind+":%", time.Now().UnixMilli())) > 0
	}
	if needed != (state == string(run.NeedsAttention)) && y.Issue != run.IssueExpectation && !under {
		w.fail("people see the %s as %s (%s), and its row says %s (%s)", kind, y.State, y.Sentence, state, row[3])
	}
	for _, g := range y.Gates {
		if !g.Open && !g.Until.IsZero() && g.Until.Before(y.At) {
			w.fail("why %s: the gate %s is shut until %s, which is over: %s", kind, g.Name, pawl.FormatTime(g.Until), g.Text)
		}
	}
	active := w.rows(`select id||'' from runs where kind = $1 and (lane = $2 or lane like $2 || '/%' or lane like $2 || ':%') and status = 'active' limit 1`, kind, row[4])
	switch {
	case y.State == run.Idle && len(active) > 0:
		w.fail("people see the %s as idle, and run %s is active", kind, active[0][0])
	case y.State == run.Running && y.Issue == run.IssueNone && len(active) == 0 && kind != string(pawl.KindSchedule):
		w.fail("people see the %s as running, and nothing of it is active", kind)
	case y.State == run.Stopped && y.Issue != run.IssueHalted && !y.Paused && !strings.Contains(y.Sentence, "deleted"):
		w.fail("people see the %s as stopped (%s), and nobody paused it", kind, y.Sentence)
	case y.Paused && y.State != run.Stopped && len(active) == 0 && y.State != run.NeedsAttention && y.Issue == run.IssueNone:
		w.fail("the %s is paused, and people see it as %s", kind, y.State)
	}
}

// told is what people were told of a lane.
type told struct{ what, detail string }

// checkNoticesOfLanes holds that people are told once of each thing that a lane needs
// them for, and once that it is over.
func (w *world) checkNoticesOfLanes() {
	if w.pruned || w.skew > 0 || w.plan.shared && w.plan.parts { // lines go with time, and two nodes may tell at the same
		return
	}
	last := map[string]told{}
	for _, row := range w.rows(`select action||'', subject||'', coalesce(detail, '')||'' from audit_log where action like 'told.%' order by id`) {
		now := told{strings.TrimPrefix(row[0], "told."), row[2]}
		was := last[row[1]]
		var d struct{ Issue, Text, Run string }
		_ = json.Unmarshal([]byte(row[2]), &d)
		if now == was || now.what == lane.NoticeRecovered && was.what != lane.NoticeAttention {
			w.fail("people were told of %s that it %s (%s), and the last that they had heard was %q %s", row[1], now.what, d.Text, was.what, was.detail)
		}
		last[row[1]] = now
	}
	for _, row := range w.rows(`select kind||'', key||'', coalesce(cause, '')||'' from (select kind, case when kind = 'schedule' then lane else name end as key, cause from lanes) l`) {
		if w.feed != nil && w.feed.gone && row[0] == string(pawl.KindSource) { // it may be another one
			continue
		}
		if what := last[row[0]+":"+row[1]].what; (what == lane.NoticeAttention) != (row[2] != "") {
			w.fail("the row of the %s says %q, and the last that people heard of it is %q", row[0], row[2], what)
		}
	}
}
