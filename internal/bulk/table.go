package bulk

// tables says of every table whether it grows with use: with what runs, comes
// in or is called, and not only with what people define. What grows is never
// read whole.
var tables = map[string]bool{ //nolint:gochecknoglobals // a constant table
	"approvals": true, "audit_log": true, "charge_receipts": true, "event_causes": true, "events": true, "execution_requests": true,
	"graph_questions": true, "hook_deliveries": true, "idempotency_keys": true, "inputs": true, "job_history": true, "job_results": true, "jobs": true, "mutation_inputs": true,
	"mutations": true, "repairs": true, "_rejects": true, "read_contents": true, "run_logs": true, "run_reads": true, "runs": true, "schedule_runs": true, "source_runs": true,

	// Those of a week.
	"partitions": true,
	// Message ids are never forgotten.
	"event_tombs": true,
	// Days of accounts and grants; a year of ten thousand schedules is millions.
	"charge_days": true,
	// Versions and backfills are made by people, but never forgotten.
	"backfills": true, "calendar_versions": true, "schedule_versions": true, "source_versions": true, "workflow_versions": true,

	// A row for each lane, handler, topic, method or need that is defined.
	"approval_rules": false, "calendars": false, "execution_grants": false, "handler_state": false, "hooks": false, "lanes": false, "needs": false, "partition_sorts": false, "producer_schedules": false, "retries": false,
	"schedules": false, "source_definitions": false, "source_state": false, "topics": false, "worker_starts": false, "worker_tasks": false, "workflow_rights": false, "workflows": false,
	// A row for each person, token, domain, node or run that is under way.
	"billing_accounts": false, "buckets": false, "charge_reservations": false, "door_watch": false, "job_leases": false, "nodes": false, "promotions": false, "rate_limiter_state": false,
	"schema_migrations": false, "served_tasks": false, "tokens": false, "users": false, "worker_clock": false, "write_probe": false,
	// A row for each walk, table, day of three months, or mistake of a clock, and for the last thousand halts.
	"halts":           false,
	"retention_clock": false, "retention_floors": false, "retention_leaps": false, "storage_days": false,
	// A row for each moment of half a minute in which somebody follows another node.
	"relay_batches": false,
}

// Grows reports whether a table grows with use, and whether that is known.
func Grows(table string) (grows, known bool) {
	grows, known = tables[table]
	return grows, known
}
