package pawl_test

import (
	"bytes"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What the requirements say about the shape of the program, where no behaviour
// shows it. Each check names what it holds.

// under reports whether a file is in a folder or below it.
func under(name, folder string) bool { return strings.HasPrefix(name, folder+"/") }

// filesUnder are the product files in a folder and below it. A check that finds
// nothing to look at would never fail again, so at least one must be there.
func filesUnder(t *testing.T, folder string) map[string]*ast.File {
	t.Helper()
	files := productFiles(t)
	for name := range files {
		if !under(name, folder) {
			delete(files, name)
		}
	}
	if len(files) == 0 {
		t.Fatalf("%s has no files", folder)
	}
	return files
}

// oursOf are the imports of a file from this module, without its path.
func oursOf(file *ast.File) (list []string) {
	for _, imported := range importsOf(file) {
		if inner, ours := strings.CutPrefix(imported, modulePath+"/"); ours {
			list = append(list, inner)
		}
	}
	return list
}

// schedulingFolders are where slots become executions.
func schedulingFolders() []string {
	return []string{"internal/schedule", "internal/execution", "internal/grant", "internal/billing"}
}

func scheduling(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	for _, folder := range schedulingFolders() {
		maps.Copy(files, filesUnder(t, folder))
	}
	return files
}

// C-01: scheduling has no way to a model provider but the execution service.
// Executors reach providers; the service is reached over HTTP by one file, which
// knows one address.
func TestSchedulesReachGraphsOnlyThroughTheExecutionService(t *testing.T) {
	speaksHTTP := []string{"internal/execution/handler.go", "internal/execution/problem.go", "internal/execution/remote.go"}
	for name, file := range scheduling(t) {
		for _, imported := range importsOf(file) {
			inner := strings.TrimPrefix(imported, modulePath+"/")
			switch {
			case strings.HasPrefix(imported, "net") && slices.Contains(speaksHTTP, name):
			case imported == "net/http", imported == "net", inner == "internal/outbound":
				t.Errorf("%s imports %s: only executors reach the outside", name, imported)
			case path.Dir(name) == "internal/schedule" && under(inner+"/", "internal/executor"):
				t.Errorf("%s imports %s: a schedule asks the execution service, and knows no executor", name, imported)
			}
		}
		if name != "internal/execution/remote.go" && (calls(file, "http", "NewRequestWithContext") || calls(file, "http", "NewRequest") || calls(file, "http", "Get")) {
			t.Errorf("%s sends requests", name)
		}
	}
	asked := regexp.MustCompile(`\.call\(ctx, [\w.]+, (\w+)`).FindAllSubmatch(read(t, "internal/execution/remote.go"), -1)
	for _, match := range asked {
		if !slices.Contains([]string{"pathGraphs", "pathOutcome", "pathCancel", "pathResume"}, string(match[1])) {
			t.Errorf("internal/execution/remote.go asks for %s, which is no path of the execution service", match[1])
		}
	}
	if len(asked) == 0 {
		t.Error("internal/execution/remote.go asks for nothing")
	}
	if fields := structFields(t, "internal/schedule/service.go", "Options"); fields["Executions"] != "execution.API" {
		t.Errorf("schedules are given %q to run graphs with, want execution.API", fields["Executions"])
	}
}

// C-02, C-78: what runs jobs knows no sign-in of anybody: there is no session in
// its code, and none in the database that it could read.
func TestWorkersKnowNoSessions(t *testing.T) {
	session := regexp.MustCompile(`(?i)session|cookie`)
	for _, folder := range append([]string{"internal/queue", "internal/ledger", "internal/run", "internal/executor"}, schedulingFolders()...) {
		for name := range filesUnder(t, folder) {
			if found := session.Find(read(t, name)); found != nil {
				t.Errorf("%s speaks of %q", name, found)
			}
		}
	}
	for name, text := range migrations(t) {
		if found := session.FindString(text); found != "" {
			t.Errorf("%s keeps a %q", name, found)
		}
	}
}

// C-20: the code of schedules gets what it needs from outside, and imports
// neither the surfaces nor the other kinds, tests apart.
func TestTasksImportNoApplicationCode(t *testing.T) {
	application := []string{"api", "web", "cli", "server", "demo", "workflow", "source", "script", "tool", "repair", "task", "notify"}
	files := scheduling(t)
	maps.Copy(files, filesUnder(t, "internal/executor"))
	for name, file := range files {
		for _, inner := range oursOf(file) {
			part := strings.Split(inner, "/")
			if inner == "internal/tool/connector" && under(name, "internal/executor") {
				continue // adapters have the same outcomes as those of scripts
			}
			if len(part) > 1 && slices.Contains(application, part[1]) {
				t.Errorf("%s imports %s: take what is needed as an interface or a function", name, inner)
			}
		}
	}
}

// C-21, C-89: parts are put together in internal/server and nowhere else, and
// the program's entry only starts it. There is no second layer of wiring, and no
// module in the place of another.
func TestOnlyTheServerWires(t *testing.T) {
	makers := map[string]string{
		"internal/schedule": "New", "internal/execution": "New", "internal/workflow": "New", "internal/source": "New", "internal/queue": "New", "internal/executor": "Load",
	}
	exceptions := []string{"internal/cli/cmd_validate_yaml.go"} // checks executor files without a server
	wired := 0
	for name, file := range productFiles(t) {
		for _, inner := range oursOf(file) {
			maker := makers[inner]
			if maker == "" || slices.Contains(exceptions, name) || !calls(file, path.Base(inner), maker) {
				continue
			}
			if wired++; path.Dir(name) != "internal/server" {
				t.Errorf("%s makes a %s.%s; internal/server puts parts together", name, path.Base(inner), maker)
			}
		}
	}
	if wired < len(makers) {
		t.Errorf("found %d places where parts are made, want at least %d", wired, len(makers))
	}
	for name, file := range filesUnder(t, "cmd/pawl") {
		for _, inner := range oursOf(file) {
			if inner != "internal/cli" && inner != "internal/script" {
				t.Errorf("%s imports %s: the entry only starts the command line, or a process of scripts", name, inner)
			}
		}
	}
	if regexp.MustCompile(`(?m)^replace\b`).Match(read(t, "go.mod")) {
		t.Error("go.mod replaces a module")
	}
}

// C-22: the types that others share stand alone: those of the contract, the
// database and the rules need nothing above them.
func TestContractsStandAlone(t *testing.T) {
	allowed := map[string][]string{
		"internal/execution/contract": {"client", "internal/run"},
		"internal/store":              {"internal/store", "internal/store/door", "internal/store/runstore"}, // and its rooms
		"internal/run":                {},
	}
	for folder, neighbours := range allowed {
		for name, file := range filesUnder(t, folder) {
			for _, inner := range oursOf(file) {
				if !slices.Contains(neighbours, inner) {
					t.Errorf("%s imports %s; others could not take %s without it", name, inner, folder)
				}
			}
		}
	}
}

// C-19, C-23: one program is server and worker, by its roles, and one command
// starts it for whoever works on it.
func TestTheWorkerStartsAlone(t *testing.T) {
	if !regexp.MustCompile(`(?m)^run:.*\n\tgo run \./cmd/pawl serve`).Match(read(t, "Makefile")) {
		t.Error("make run does not start a server")
	}
	text := string(read(t, "internal/server/config.go"))
	for _, role := range []string{`RoleAPI    = "api"`, `RoleWorker = "worker"`} {
		if !strings.Contains(text, role) {
			t.Errorf("a process cannot have the role %s", role)
		}
	}
}

// C-63, C-64: schedules and their slots have the operations of the ports, apart
// from each other: each table is written by one file.
func TestSchedulesAndSlotsHaveTheirOperations(t *testing.T) {
	for file, methods := range map[string][]string{
		"internal/schedule/manage.go":              {"Create", "Update", "Delete"},
		"internal/schedule/status.go":              {"List"},
		"internal/store/schedulestore/schedule.go": {"InsertSchedule", "ListSchedules", "UpdateSchedule", "DeleteSchedule", "StaleSchedules"},
		"internal/store/schedulestore/slot.go":     {"InsertSlots", "StartSlot", "CloseSlot"},
	} {
		have := methodsOf(parse(t, file, read(t, file)))
		for _, method := range methods {
			if !slices.Contains(have, method) {
				t.Errorf("%s has no %s", file, method)
			}
		}
	}
	for table, home := range map[string]string{"schedules": "internal/store/schedulestore/schedule.go", "schedule_runs": "internal/store/schedulestore/slot.go"} {
		writes := regexp.MustCompile(`(insert into|update|delete from) ` + table + `\b`)
		found := false
		for name := range productFiles(t) {
			if text := read(t, name); bytes.Contains(text, []byte(" "+table)) && writes.Match(text) { // the expression alone takes long
				if found = found || name == home; name != home {
					t.Errorf("%s writes the table %s, which %s does", name, table, home)
				}
			}
		}
		if !found {
			t.Errorf("nobody writes the table %s", table)
		}
	}
}

// C-80: what waits has no run id; the first start makes it.
func TestNoRunIDIsMadeBeforeTheStart(t *testing.T) {
	for file, name := range map[string]string{"internal/store/schedulestore/slot.go": "NewSlot", "internal/schedule/service.go": "slotPayload"} {
		fields := structFields(t, file, name)
		if len(fields) == 0 {
			t.Errorf("%s has no %s", file, name)
		}
		for field := range fields {
			if strings.Contains(strings.ToLower(field), "run") {
				t.Errorf("%s of %s has the field %s", name, file, field)
			}
		}
	}
	if !regexp.MustCompile(`\n  run_id +text not null default '',`).MatchString(migrations(t)["0005_schedules.sql"]) {
		t.Error("the run id of a slot is not empty at first")
	}
}

// C-44, C-48, C-83: grants are found by user and account; no table of schedules
// keeps a credential, and none what nobody has asked for yet.
func TestTablesOfSchedules(t *testing.T) {
	text := migrations(t)["0005_schedules.sql"]
	for _, index := range []string{"idx_grants_user_id on execution_grants (user_id)", "idx_grants_billing_account_id on execution_grants (billing_account_id)"} {
		if !strings.Contains(text, "create index "+index) {
			t.Errorf("there is no index %s", index)
		}
	}
	forbidden := regexp.MustCompile(`^(session.*|oauth.*|api_?key|secret|password|credential.*|.*token|virtual_key|backfill_?limit|starting_?deadline.*)$`)
	columns := regexp.MustCompile(`(?m)^  (\w+) +(?:text|bigint)`).FindAllStringSubmatch(text, -1)
	if len(columns) < 50 {
		t.Fatalf("found %d columns", len(columns))
	}
	for _, column := range columns {
		if forbidden.MatchString(column[1]) {
			t.Errorf("a table of schedules has the column %s", column[1])
		}
	}
	early := regexp.MustCompile(`(?i)backfill_?limit|starting_?deadline_?seconds`)
	for _, folder := range append([]string{"internal/store", "internal/api"}, schedulingFolders()...) {
		for name := range filesUnder(t, folder) {
			if found := early.Find(read(t, name)); found != nil {
				t.Errorf("%s has %s, which nobody asked for", name, found)
			}
		}
	}
}

// C-86, C-87: the rules, the times, the contracts and the definitions are tested
// without a database.
func TestRulesAreTestedWithoutADatabase(t *testing.T) {
	for _, folder := range []string{"internal/run", "internal/when", "internal/definition", "internal/execution/contract", "internal/schedule/spec", "internal/source/spec"} {
		found := 0
		for name, file := range testFiles(t) {
			if path.Dir(name) != folder {
				continue
			}
			found++
			for _, inner := range oursOf(file) {
				if strings.HasPrefix(inner, "internal/store") || inner == "internal/pgtest" {
					t.Errorf("%s imports %s", name, inner)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s has no tests", folder)
		}
	}
}

// C-88: whoever has the tables of schedules has those of the queue, because one
// chain of migrations makes both; no test can lack the one.
func TestTheQueueIsInTheSameSchema(t *testing.T) {
	made := map[string]string{}
	for name, text := range migrations(t) {
		for _, match := range regexp.MustCompile(`create table (\w+)`).FindAllStringSubmatch(text, -1) {
			made[match[1]] = name
		}
	}
	if made["jobs"] == "" || made["schedules"] == "" || made["jobs"] > made["schedules"] {
		t.Errorf("jobs are made by %q, schedules by %q", made["jobs"], made["schedules"])
	}
}

// B-19, B-45: what runs in the background is this and no more. Retry budgets
// have no job of their own: whoever looks at a source sees whether its period is
// over.
func TestTheJobsOfTheHouse(t *testing.T) {
	want := map[string][]string{
		"internal/server":   {`"http"`, `"log"`, "executionSweep", "expect.Name", "need.TaskName", "notify.HeartbeatName", "notify.Name", "prune.Name"},
		"internal/workflow": {"ContinueName", "PartName", "SweepName", "TaskName", "WakeName"},
		"internal/source":   {"ContinueName", "SweepName", "TaskName"},
		"internal/schedule": {"BackfillName", "ContinueName", "ReconcileName", "TaskName"},
	}
	for folder, names := range want {
		var got []string
		for _, file := range filesUnder(t, folder) {
			ast.Inspect(file, func(node ast.Node) bool {
				if lit, ok := node.(*ast.CompositeLit); ok && typeText(lit.Type) == "map[string]queue.Task" {
					for _, element := range lit.Elts {
						got = append(got, typeText(element.(*ast.KeyValueExpr).Key))
					}
				}
				return true
			})
		}
		if slices.Sort(got); !slices.Equal(got, names) {
			t.Errorf("the tasks of %s are %v,\nwant %v; a new one is written down here with what it is for", folder, got, names)
		}
	}
}

// What all lanes have in common is asked of lane.Kind: the surfaces, the server
// and the notifier name a kind only in files that are named after it.
func TestKindsAreNamedInTheirOwnFiles(t *testing.T) {
	kinds := map[string]string{"KindWorkflow": "workflow", "KindSource": "source", "KindSchedule": "schedule"}
	for _, folder := range []string{"internal/api", "internal/web", "internal/server", "internal/notify"} {
		for name, file := range filesUnder(t, folder) {
			ast.Inspect(file, func(node ast.Node) bool {
				named, ok := node.(*ast.SelectorExpr)
				if ok && kinds[named.Sel.Name] != "" && !namesAKind(path.Base(name), slices.Collect(maps.Values(kinds))) {
					t.Errorf("%s speaks of %s; ask lane.Kind, or move it to a file of the kind", name, typeText(named))
				}
				return true
			})
		}
	}
}

func namesAKind(file string, kinds []string) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(file, kind) })
}

// C-84: every number that is measured is explained to whoever runs it.
func TestEveryMetricIsExplained(t *testing.T) {
	explained, found := string(read(t, "docs/operations.md")), 0
	for _, folder := range []string{"internal/queue", "internal/api", "internal/prune"} {
		for name := range filesUnder(t, folder) {
			for _, match := range regexp.MustCompile(`(?:Name: |NewDesc\()"(pawl_[a-z_]+)"`).FindAllSubmatch(read(t, name), -1) {
				if found++; !strings.Contains(explained, string(match[1])) {
					t.Errorf("%s measures %s, which docs/operations.md does not explain", name, match[1])
				}
			}
		}
	}
	if found == 0 {
		t.Error("nothing is measured")
	}
}

// YAML has one reader, so that a fault looks the same wherever it is made; the
// command line writes it as well. Tests read what it wrote.
func TestYAMLIsReadInOnePlace(t *testing.T) {
	for name, file := range goFiles(t) {
		if strings.HasPrefix(name, "bench/") || under(name, "internal/definition") || name == "internal/cli/output_yaml.go" || under(name, "internal/cli") && strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, imported := range importsOf(file) {
			if strings.HasPrefix(imported, "github.com/goccy/go-yaml") {
				t.Errorf("%s imports %s: read YAML with internal/definition", name, imported)
			}
		}
	}
}

// The structs that cross HTTP are in client: the server, the command line, the
// pages and users' programs share them. A struct with as many JSON fields as
// this elsewhere in what speaks HTTP is a copy, or has a reason.
func TestWhatCrossesHTTPIsInTheClient(t *testing.T) {
	const fields = 4
	reasons := map[string]string{
		"internal/cli/cmd_status.go status":               "what pawl status prints",
		"internal/cli/cmd_try.go triedJSON":               "what pawl test prints",
		"internal/cli/cmd_try.go triedCall":               "what pawl test prints",
		"internal/cli/cmd_try.go triedInput":              "what pawl test prints",
		"internal/cli/cmd_try_source.go triedSource":      "what pawl test prints",
		"internal/cli/cmd_try_source.go triedRequest":     "what pawl test prints",
		"internal/cli/cmd_validate.go checked":            "what pawl validate prints",
		"internal/cli/cmd_validate.go fault":              "what pawl validate prints",
		"internal/cli/cmd_version.go build":               "what pawl version prints",
		"internal/cli/yaml_file.go sent":                  "both answers to apply, of which the definitions are shown as they are",
		"internal/demo/market.go price":                   "what the demo's own API serves",
		"internal/demo/scene_prices.go tableRow":          "a row of the demo's own table",
		"internal/execution/memory.go memory":             "what is stored of an execution",
		"internal/execution/problem.go problem":           "the execution service's own, with the run that is in progress",
		"internal/execution/contract/run.go RunRequestV1": "the versioned contract with executors",
		"internal/execution/contract/run.go RunAnswerV1":  "the versioned contract with executors",
	}
	for _, folder := range []string{"internal/api", "internal/web", "internal/cli", "internal/server", "internal/demo", "internal/execution"} {
		for name, file := range filesUnder(t, folder) {
			where := ""
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					where = name + " " + n.Name.Name
				case *ast.FuncDecl:
					where = name + " " + n.Name.Name
				case *ast.StructType:
					if count := jsonFields(n); count >= fields && reasons[where] == "" {
						t.Errorf("%s: a struct with %d JSON fields; use the type of client, or give the reason here", where, count)
					} else if count >= fields {
						delete(reasons, where)
					}
				}
				return true
			})
		}
	}
	for where := range reasons {
		t.Errorf("%s is gone; remove its reason", where)
	}
}

// jsonFields is how many fields of a struct have a name in JSON.
func jsonFields(s *ast.StructType) (count int) {
	for _, field := range s.Fields.List {
		if field.Tag != nil && strings.Contains(field.Tag.Value, `json:"`) && !strings.Contains(field.Tag.Value, `json:"-"`) {
			count++
		}
	}
	return count
}
