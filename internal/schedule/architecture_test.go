package schedule

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sources are the files of this package that are no tests, by name.
func sources(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(text)
	}
	if len(out) < 10 {
		t.Fatalf("found %d files", len(out))
	}
	return out
}

// C-66, C-70, C-78: whoever runs slots knows grants by their id, and neither
// scopes nor sessions nor keys.
func TestWorkersKnowNoScopesAndNoSessions(t *testing.T) {
	forbidden := regexp.MustCompile(`(?i)scope|session|cookie|oauth|api_?key|password`)
	for name, text := range sources(t) {
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s speaks of %q", name, found)
		}
	}
}

// C-08, C-10, C-65, C-75, C-76, C-77: there is no SQL here, jobs are made in the
// caller's transaction and nowhere else, and only the reconciler looks for
// schedules by their next instant.
func TestNobodyPollsForDueSchedules(t *testing.T) {
	sql := regexp.MustCompile("(?i)`\\s*(select|insert|update|delete|with)\\b|\\.(Query|QueryRow|Exec)\\(")
	jobs := regexp.MustCompile(`\.(Enqueue|EnqueueOwnTx)\(`)
	for name, text := range sources(t) {
		if found := sql.FindString(text); found != "" {
			t.Errorf("%s has SQL of its own: %s", name, found)
		}
		if jobs.MatchString(text) {
			t.Errorf("%s makes jobs outside of the caller's transaction", name)
		}
		if name != "reconcile.go" && strings.Contains(text, "StaleSchedules") {
			t.Errorf("%s looks for stale schedules", name)
		}
	}
	found := 0
	names, err := filepath.Glob("../store/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") && regexp.MustCompile(`from schedules[^`+"`"+`]*next_run_at`).Match(text) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d files look for schedules by their next instant, want the one of the reconciler", found)
	}
}

// C-46, C-47, C-48, C-50, C-51, C-52, C-85, lesson 53: the tables have the columns and the
// indexes of the contract, and no column for a credential.
func TestTheTablesHoldNoCredentials(t *testing.T) {
	raw, err := os.ReadFile("../store/migrations/0005_schedules.sql")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	table := regexp.MustCompile(`(?s)create table (\w+) \((.*?)\n\);`)
	column := regexp.MustCompile(`(?m)^  (\w+) +(?:text|bigint)`)
	columns := map[string][]string{}
	for _, match := range table.FindAllStringSubmatch(text, -1) {
		for _, c := range column.FindAllStringSubmatch(match[2], -1) {
			columns[match[1]] = append(columns[match[1]], c[1])
			if regexp.MustCompile(`session|oauth|api_key|secret|password|credential|virtual_key|token$`).MatchString(c[1]) {
				t.Errorf("%s has the column %s", match[1], c[1])
			}
		}
	}
	for name, want := range map[string]string{
		"schedules":     "id owner_user_id execution_grant_id graph_id input cron timezone enabled next_run_at last_run_at created_at updated_at",
		"schedule_runs": "id schedule_id run_id scheduled_for started_at completed_at status attempt_count langfuse_trace_id error_message error_code",
	} {
		have := " " + strings.Join(columns[name], " ") + " "
		for c := range strings.FieldsSeq(want) {
			if !strings.Contains(have, " "+c+" ") {
				t.Errorf("%s has no column %s", name, c)
			}
		}
	}
	for _, index := range []string{
		"index idx_schedules_owner ", "index idx_schedules_next_run ", "index idx_schedules_grant ", "index idx_runs_schedule ", "index idx_runs_scheduled_for ",
		"index idx_runs_run_id ", "unique index schedule_runs_slot on schedule_runs (schedule_id, scheduled_for)",
	} {
		if !strings.Contains(text, index) {
			t.Errorf("there is no %s", index)
		}
	}
}
