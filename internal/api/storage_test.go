package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// The database tells how large it is, by table and by lane.
func TestStorageTellsHowLargeTheDatabaseIs(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("mail", producing("mail", "return {}"))
		r.waitRuns("?lane=mail&status=committed", 2)
		var s client.Storage
		r.do("GET", "/api/v1/storage", nil).want(http.StatusOK).into(&s)
		if s.Database != r.db.Name() || s.TotalBytes == 0 || s.Keep["runs"] != "90d" || (s.RoomBytes == nil) != (s.Database == "postgres") {
			t.Errorf("%+v", s)
		}
		counted := map[string]client.StorageTable{}
		for _, table := range s.Tables {
			counted[table.Name] = table
		}
		if n := counted["runs"]; n.Rows != int64(r.count(`select count(*) from runs`)) || n.Bytes < 4096 || n.Estimated {
			t.Errorf("%+v", n)
		}
		if len(s.Lanes) != 1 || s.Lanes[0].Kind != "workflow" || s.Lanes[0].Name != "mail" || s.Lanes[0].Rows < 2 || s.Lanes[0].Bytes == 0 {
			t.Errorf("%+v", s.Lanes)
		}
	})
}

// Pruning removes what is older than it is kept, tells what it removes, and is
// written down; asking what would be removed is not.
func TestPruneRemovesWhatIsOld(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("mail", producing("mail", "return {}"))
		id := r.waitRuns("?lane=mail&status=committed", 2)[1].ID
		r.exec(`insert into job_history (id, task, state, run_at, finished_at, attempt) values (1, 't', 'succeeded', 1, 1, 1)`)
		audited := r.count(`select count(*) from audit_log where action = 'database.prune'`)
		var told, done client.Pruned
		r.do("POST", "/api/v1/prune?dryRun=true", nil).want(http.StatusOK).into(&told)
		if !told.DryRun || told.Rows != 1 || len(told.Items) != 1 || told.Items[0].Kind != "job-history" || r.count(`select count(*) from job_history where id = 1`) != 1 {
			t.Errorf("%+v", told)
		}
		if n := r.count(`select count(*) from audit_log where action = 'database.prune'`); n != audited {
			t.Error("a question is in the audit log")
		}
		r.do("POST", "/api/v1/prune", nil).want(http.StatusOK).into(&done)
		if done.DryRun || done.Rows != 1 || done.More || r.count(`select count(*) from job_history where id = 1`) != 0 {
			t.Errorf("%+v", done)
		}
		if n := r.count(`select count(*) from audit_log where action = 'database.prune'`); n != audited+1 {
			t.Errorf("it is in the audit log %d times", n-audited)
		}
		r.do("GET", "/api/v1/runs/"+id, nil).want(http.StatusOK)
	})
}

// What definitions say about keeping is shown with them and with what they take,
// and pruning goes by it.
func TestPruneGoesByWhatDefinitionsKeep(t *testing.T) {
	both(t, func(r *rig) {
		r.deploy("mail", strings.Replace(producing("mail", "return {}"), "name:", `keep: { runs: "1d", "idle-runs": "forever" }, name:`, 1))
		r.waitRuns("?lane=mail&status=committed", 2)
		r.exec(`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at, ended_at)
			values ('two-days', 'workflow', 'mail', 'p', 'producer', 'event', 'committed', 'committed', 1, $1, $1, $1)`, time.Now().Add(-48*time.Hour).UnixMilli())
		var s client.Storage
		r.do("GET", "/api/v1/storage", nil).want(http.StatusOK).into(&s)
		if len(s.Lanes) != 1 || s.Lanes[0].Keep["runs"] != "1d" || s.Lanes[0].Keep["idle-runs"] != "forever" {
			t.Errorf("%+v", s.Lanes)
		}
		var w client.Workflow
		r.do("GET", "/api/v1/workflows/mail", nil).want(http.StatusOK).into(&w)
		if w.Config.Keep["runs"] != "1d" {
			t.Errorf("%+v", w.Config)
		}
		var told, done client.Pruned
		r.do("POST", "/api/v1/prune?dryRun=true", nil).want(http.StatusOK).into(&told)
		r.do("POST", "/api/v1/prune", nil).want(http.StatusOK).into(&done)
		for _, p := range []client.Pruned{told, done} {
			if p.Rows != 1 || p.Items[0].Kind != "runs" || p.Items[0].Lane != "mail" {
				t.Errorf("%+v", p)
			}
		}
		p := r.do("PUT", "/api/v1/workflows/bad", map[string]any{"filename": "bad.workflow.js", "script": strings.Replace(producing("bad", "return {}"), "name:", `keep: { runs: "soon" }, name:`, 1)})
		if p.status != http.StatusUnprocessableEntity || !strings.Contains(string(p.body), "is not an age") || !strings.Contains(string(p.body), "Write an age such as 12h") {
			t.Errorf("%d %s", p.status, p.body)
		}
	})
}

// Storage names everybody's lanes and pruning removes everybody's history: both are
// for administrators.
func TestStorageIsForAdministrators(t *testing.T) {
	both(t, func(r *rig) {
		r.exec(`insert into job_history (id, task, state, run_at, finished_at, attempt) values (1, 't', 'succeeded', 1, 1, 1)`)
		for name, token := range map[string]string{
			"a viewer":                r.token("ann", userstore.RoleViewer, "read"),
			"an operator":             r.token("bob", userstore.RoleOperator, "write"),
			"an operator with * only": r.token("cleo", userstore.RoleOperator, "*"),
			"an admin's narrow token": r.token("dan", userstore.RoleAdmin, "runs:admin", "storage:write"),
		} {
			for path, method := range map[string]string{"/api/v1/storage": "GET", "/api/v1/prune": "POST", "/api/v1/prune?dryRun=true": "POST"} {
				if p := r.as(token, method, path, nil).problem(403, "forbidden"); p.Detail == "" {
					t.Errorf("%s: %+v", name, p)
				}
			}
		}
		if r.count(`select count(*) from job_history where id = 1`) != 1 {
			t.Error("what was refused is done")
		}
		r.as(r.token("eve", userstore.RoleAdmin, "storage:admin"), "POST", "/api/v1/prune", nil).want(http.StatusOK)
	})
}
