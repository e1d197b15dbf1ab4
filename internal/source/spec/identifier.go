package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
)

var identifierPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// ownTables are those of Pawl. A test compares them with the migrations.
func ownTables() []string {
	return []string{
		"_rejects", "approval_rules", "approvals", "attention", "audit_log", "backfills", "billing_accounts",
		"buckets", "calendar_versions", "calendars", "charge_days", "charge_receipts", "charge_reservations", "door_watch", "event_causes", "event_tombs", "events", "execution_grants",
		"execution_requests", "graph_questions", "halts", "handler_state", "hook_deliveries", "hooks", "idempotency_keys", "inputs", "job_history", "job_leases", "job_results", "jobs", "lanes",
		"mutation_inputs", "mutations", "mutations_next", "needs", "nodes", "partition_sorts", "partitions", "producer_schedules", "promotions", "rate_limiter_state", "read_contents", "relay_batches", "repairs",
		"retention_clock", "retention_floors", "retention_leaps", "retries", "run_logs", "run_reads", "runs", "schedule_runs", "schedule_versions", "schedules",
		"schema_migrations", "served_tasks", "source_definitions", "source_runs", "source_state", "source_versions", "storage_days",
		"tokens", "topics", "users", "worker_clock", "worker_starts", "worker_tasks", "workflow_rights", "workflow_versions", "workflows", "write_probe",
	}
}

// ownPrefixes begin the names of tables that belong to Pawl or the database.
func ownPrefixes() []string { return []string{"pg_", "sqlite_", "_pawl_"} }

// ownColumns are filled by Pawl in every table, or by PostgreSQL.
func ownColumns() []string {
	return []string{
		"source_name", "created_at", "updated_at", "_raw", "_row", "_run",
		"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin",
	}
}

// tableProblem says why a name cannot be that of a table; empty if it can.
// Databases do not tell capital letters from small ones, so neither does this.
func tableProblem(name string) string {
	lower := strings.ToLower(name)
	switch {
	case !identifierPattern.MatchString(name):
		return identifierProblem(name)
	case slices.Contains(ownTables(), lower):
		return fmt.Sprintf("%s is a table of Pawl itself: choose another name", pawl.Quote(name))
	}
	for _, prefix := range ownPrefixes() {
		if strings.HasPrefix(lower, prefix) {
			return fmt.Sprintf("%s: names that begin with %s are not for tables of sources", pawl.Quote(name), prefix)
		}
	}
	return ""
}

// columnProblem says why a name cannot be that of a column; empty if it can.
func columnProblem(name string) string {
	switch {
	case !identifierPattern.MatchString(name):
		return identifierProblem(name)
	case slices.Contains(ownColumns(), strings.ToLower(name)):
		return fmt.Sprintf("%s is a column that Pawl or the database fills itself: choose another name", pawl.Quote(name))
	}
	return ""
}

func identifierProblem(name string) string {
	return fmt.Sprintf("%s is not a name for SQL: it has up to 63 letters, digits and _, and does not begin with a digit", pawl.Quote(name))
}
