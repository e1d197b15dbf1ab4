package bulk

// steps are the statements of Fill, in their order.
func steps() []string {
	return append(append(lanes(), ran()...), around()...)
}

// lanes are definitions.
func lanes() []string {
	const flow, source, schedule, grant = `'00000001-0000-7000-8000-' || (100000000000 + i)`, `'00000002-0000-7000-8000-' || (100000000000 + i)`,
		`'00000003-0000-7000-8000-' || (100000000000 + i)`, `'00000005-0000-7000-8000-' || (100000000000 + i)`
	const owner = `case when i % 3 = 0 then {other} else {owner} end`
	return []string{
		`insert into workflows (id, name, lane, desired, version, created_at, updated_at, deployed_at) {n:flows}
			select ` + flow + `, 'w' || (100000 + i), 'w' || (100000 + i), case when i % 20 = 0 then 'paused' else 'active' end, version, {then}, {then}, {then}
			from n cross join (select * from workflows where name = {flow}) t`,
		`insert into workflow_versions (workflow_id, version, number, filename, source, config, created_at) {n:flows}
			select ` + flow + `, version, number, filename, source, replace(config, {flow}, 'w' || (100000 + i)), {then}
			from n cross join (select v.* from workflow_versions v join workflows w on w.id = v.workflow_id where w.name = {flow}) t`,
		`insert into workflow_versions (workflow_id, version, number, filename, source, config, created_at) {n:300}
			select '00000001-0000-7000-8000-100000000001', 'v' || i, i + 1, filename, source, config, {then}
			from n cross join (select v.* from workflow_versions v join workflows w on w.id = v.workflow_id where w.name = {flow}) t`,
		`insert into topics (workflow_id, name, created_at) {n:flows}
			select ` + flow + `, t.name, {then} from n cross join (select t.* from topics t join workflows w on w.id = t.workflow_id where w.name = {flow}) t`,
		`insert into producer_schedules (id, workflow_id, producer_name, schedule_type, schedule_value, timezone, next_run_at, created_at, updated_at) {n:flows}
			select 'p-' || i, ` + flow + `, t.producer_name, t.schedule_type, t.schedule_value, t.timezone, {now} + 3600000 + i * 1000, {then}, {then}
			from n cross join (select p.* from producer_schedules p join workflows w on w.id = p.workflow_id where w.name = {flow}) t`,

		`insert into source_definitions (id, name, definition, version, number, status, created_at, updated_at) {n:sources}
			select ` + source + `, 's' || (100000 + i), replace(definition, '"name":"' || {source} || '"', '"name":"s' || (100000 + i) || '"'), version, 1, status, {then}, {then}
			from n cross join (select * from source_definitions where name = {source}) t`,
		`insert into source_state (source_id, last_success_at, last_attempt_at, updated_at) {n:sources} select ` + source + `, {now}, {now}, {now} from n`,
		`insert into source_versions (source_id, number, version, definition, created_at) {n:300}
			select '00000002-0000-7000-8000-100000000001', i, version, definition, {then} from n cross join (select * from source_definitions where name = {source}) t`,

		`insert into hooks (name, definition, version, owner, created_at, updated_at, updated_by) {n:30}
			select 'h' || i, '{"name":"h","verify":{"scheme":"github","secret":"${NONE}"},"job":{"task":"log"},"maxBytes":1048576}', 'v', {owner}, {then}, {then}, 'ada' from n`,
		`insert into worker_tasks (name, definition, owner, created_at, updated_at, updated_by) {n:30} select 't' || i, '{}', {owner}, {then}, {then}, 'ada' from n`,
		`insert into execution_grants (id, user_id, billing_account_id, scopes, automatic, created_at) {n:schedules}
			select ` + grant + `, ` + owner + `, (select a.id from billing_accounts a where a.owner_id = ` + owner + ` limit 1), t.scopes, 1, {then}
			from n cross join (select g.* from execution_grants g join schedules s on s.execution_grant_id = g.id where s.id = {schedule}) t`,
		`insert into schedules (id, name, owner_user_id, execution_grant_id, graph_id, input, cron, timezone, concurrency_policy, labels, next_run_at, created_at, updated_at) {n:schedules}
			select ` + schedule + `, 'g' || (100000 + i), ` + owner + `, ` + grant + `, graph_id, input, cron, timezone, case when i % 2 = 0 then 'Allow' else 'Queue' end, labels,
			{now} + 3600000 + i * 1000, {then}, {then} from n cross join (select * from schedules where id = {schedule}) t`,
		`insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since) {n:flows}
			select 'workflow', 'w' || (100000 + i), ` + flow + `, 'w' || (100000 + i), '', case when i % 20 = 0 then 'Stopped' when i <= 30 then 'Needs attention' else 'Idle' end,
			case when i <= 30 then 'c' else '' end, case when i <= 30 then 'approval' else '' end, case when i <= 30 then 'It waits.' else '' end, {now} from n`,
		`insert into lanes (kind, lane, id, name, owner, state, cause, issue, text) {n:sources}
			select 'source', 's' || (100000 + i), ` + source + `, 's' || (100000 + i), '', 'Idle', '', '', '' from n`,
		`insert into lanes (kind, lane, id, name, owner, state, cause, issue, text) {n:schedules}
			select 'schedule', ` + schedule + `, ` + schedule + `, 'g' || (100000 + i), ` + owner + `, 'Idle', '', '', '' from n`,
		`insert into calendars (name, revision, days, created_at, updated_at) {n:300} select 'c' || (100000 + i), 1, '["2099-01-01"]', {then}, {then} from n`,
		`insert into schedule_versions (schedule_id, revision, graph_id, input, cron, timezone, enabled, created_at) {n:schedules}
			select ` + schedule + `, 0, graph_id, input, cron, timezone, 1, {then} from n cross join (select * from schedules where id = {schedule}) t`,
	}
}

// ran is what ran, with what hangs on runs.
func ran() []string {
	const flowID, sourceID, scheduleID, grantID = `'00000001-0000-7000-8000-' || (100000000000 + {k:flow})`, `'00000002-0000-7000-8000-' || (100000000000 + {k:source})`,
		`'00000003-0000-7000-8000-' || (100000000000 + {k:schedule})`, `'00000005-0000-7000-8000-' || (100000000000 + {k:schedule})`
	const account = `(select g.billing_account_id from execution_grants g where g.id = ` + grantID + `)`
	return []string{
		`insert into runs (id, kind, lane, handler, handler_type, trigger, phase, status, attempt, created_at, updated_at, started_at, ended_at) {n:runs}
			select {run}, {kind}, case when i % 10 < 5 then 'w' || (100000 + {k:flow}) when i % 10 < 7 then 's' || (100000 + {k:source})
				when {k:schedule} % 2 = 0 then ` + scheduleID + ` || ':' || {at} else ` + scheduleID + ` end,
			'act', case when i % 10 < 5 then 'consumer' when i % 10 < 7 then 'source' else 'schedule' end, 'schedule', 'committed',
			case when i <= 10 then 'cancelled' when i % 23 = 0 and i % 10 < 5 then 'crashed' when i % 23 = 0 and i % 10 >= 7 then 'failed:internal' else 'committed' end,
			1, {at}, {at}, {at}, {at} + 500 from n`,
		`insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, title, state, can_reconcile, result, resolved_at, created_at, updated_at) {n:runs}
			select '00000007-0000-7000-8000-' || (100000000000 + i), ` + flowID + `, {run}, 1, 'desk', 'put', '{"what":1}', 'k-' || i, 'Put ' || i, 'applied', 0, '{}', {at}, {at}, {at}
			from n where i % 10 < 5`,
		`insert into run_logs (run_id, n, phase, at, level, text) {n:runs} select {run}, 1, 'prepare', {at}, 'info', 'looked' from n where i % 10 < 2`,
		`insert into run_reads (run_id, n, phase, op, call, answer, at) {n:runs} select {run}, 1, 'prepare', 'tool', '{}', '{}', {at} from n where i % 10 < 2`,
		`insert into source_runs (run_id, source_id, version, definition, pages, started_at, updated_at) {n:runs}
			select {run}, ` + sourceID + `, 'v', '{}', 1, {at}, {at} from n where i % 10 in (5, 6)`,
		`insert into _rejects (id, source_name, run_id, page, row_number, reason, raw, created_at) {n:fifth}
			select {id}, 's' || (100000 + {k:source}), {run}, 1, 1, 'no number', '{}', {at} from n`,
		`insert into schedule_runs (id, schedule_id, run_id, scheduled_for, started_at, completed_at, status, disposition, attempt_count, trigger, backfill_id, grant_id, revision, created_at, updated_at) {n:runs}
			select '00000008-0000-7000-8000-' || (100000000000 + i), ` + scheduleID + `, {run}, {at}, {at}, {at}, case when i % 23 = 0 then 'error' else 'success' end, 'ran', 1,
			case when i % 10 = 7 and i < 10000 then 'backfill' else 'schedule' end,
			case when i % 10 = 7 and i < 10000 then '00000009-0000-7000-8000-100000000001' else null end, ` + grantID + `, 0, {at}, {at} from n where i % 10 >= 7`,
		`insert into execution_requests (idempotency_key, request_hash, run_id, graph_id, grant_id, ok, created_at, updated_at, finished_at) {n:runs}
			select 'x-' || i, '', {run}, 'x:poet', ` + grantID + `, 1, {at}, {at}, {at} from n where i % 10 >= 7`,
		`insert into charge_receipts (id, billing_account_id, grant_id, schedule_id, run_id, attempt, source_system, source_reference, executor, amount, created_at) {n:runs}
			select '0000000a-0000-7000-8000-' || (100000000000 + i), ` + account + `, ` + grantID + `, ` + scheduleID + `, {run}, 1, 'x', 'x-' || i, 'x', 1000, {at} from n where i % 10 >= 7`,
	}
}

// around is what comes and goes beside runs.
func around() []string {
	const flowID = `'00000001-0000-7000-8000-' || (100000000000 + {k:event})`
	return []string{
		`insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, created_at, updated_at) {n:half}
			select {id}, ` + flowID + `, 't', i, i, 'm-' || i, '{"n":1}', case when i % 1000 = 0 and i <= {open} then 'reserved' when i % 300 = 1 and i <= {open} then 'pending' else 'consumed' end,
			case when i % 1000 = 0 and i <= {open} then '00000004-0000-7000-8000-' || (100000000000 + 230 * (i / 1000) + 92) else null end, 'api', '[]', {at}, {at} from n`,
		`insert into inputs (id, workflow_id, source, type, external_id, title, created_by, created_at, skipped_at, skipped_by) {n:half}
			select {input}, ` + flowID + `, 'shop', 'order', 'o-' || i, 'Order ' || i, 'api', {at}, case when i < 400 and i % 10 = 0 then {at} else null end,
			case when i < 400 and i % 10 = 0 then 'ada' else null end from n`,
		`insert into event_causes (input_id, event_id) {n:half} select {input}, {id} from n where i > 20`,
		`insert into mutation_inputs (input_id, mutation_id) {n:half} select {input}, '00000007-0000-7000-8000-' || (100000000000 + i) from n where i % 10 < 5`,

		`insert into job_history (id, task, lane, key, state, run_at, started_at, finished_at, attempt) {n:half}
			select {id}, case when i <= 10 then 'log' else 'http' end, case when i % 100 = 0 then 'l' || (i % 7) else null end, case when i % 100 = 0 then 'k-' || i else null end,
			case when i <= 3 then 'cancelled' when i % 1000 = 0 then 'failed' else 'succeeded' end, {at}, {at}, {at}, 1 from n`,
		`insert into
			jobs (id, bucket, priority, run_at, max_attempts, state, task, lane, key, payload, created_at) {n:half}
			select {id} + 1, i % 64, 0, {now} + 86400000 + i * 1000, 3, case when i % 500 = 0 then 1 else 0 end, case when i = 1 then 'log' else 'http' end,
			case when i % 100 = 0 then 'l' || (i % 7) else null end, case when i % 100 = 0 then 'job-' || i else null end, '{}', {at} from n`,
		`insert into job_results (job_id, token, result, keep_until) {n:fifth} select {id}, 't', '{}', {now} + i from n`,
		`insert into audit_log (id, at, actor, action, subject, detail) {n:half} select {id}, {at}, 'ada', 'run.cancel', 'run ' || i, '{}' from n`,
		`insert into hook_deliveries (id, hook, delivery_id, received_at, outcome, attempts, effects, headers, body, bytes, updated_at) {n:half}
			select {id}, 'h' || (i % 7), 'd-' || i, {at}, case when i % 1000 = 0 then 'failed' when i % 100 = 1 then 'filtered' else 'delivered' end, 1, 1, '{}', '{}', 2, {at} from n`,
		`insert into idempotency_keys (owner, key, request, status, answer, created_at) {n:fifth} select 'ada', 'i-' || i, '', 200, '{}', {at} from n`,
		`insert into approvals (id, workflow_id, run_id, tool, method, arguments, hash, state, phase_at, created_at, expires_at) {n:few}
			select '0000000b-0000-7000-8000-' || (100000000000 + i), '00000001-0000-7000-8000-' || (100000000000 + (i % {flows}) + 1), {run}, 'desk', 'put', '{}', 'h',
			case when i <= 30 then 'pending' else 'used' end, {at}, {at}, {now} + 86400000 from n`,
		`insert into repairs (id, workflow_id, run_id, base_version, state, repairer, created_at) {n:few}
			select '0000000c-0000-7000-8000-' || (100000000000 + i), '00000001-0000-7000-8000-100000000001', {run}, 'v', 'rejected', 'x', {at} from n`,
		`insert into graph_questions (run_id, schedule_id, question, answer, answered_by, created_at, answered_at) {n:few}
			select {run}, '00000003-0000-7000-8000-' || (100000000000 + (i % {schedules}) + 1), '{}', case when i <= 10 then null else '{}' end, 'ada', {at}, {at} from n`,
		`insert into backfills (id, schedule_id, from_at, to_at, plan, hash, state, per_minute, begun, total, created_by, created_at, updated_at) {n:300}
			select '00000009-0000-7000-8000-' || (100000000000 + i), '00000003-0000-7000-8000-100000000001', {then}, {now}, '{"slots":[]}', 'h', 'done', 1, 1, 1, 'ada', {at}, {at} from n`,
	}
}
