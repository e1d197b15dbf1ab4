insert into audit_log (id, at, actor, action, subject, detail) values (380753877383553024, 1794845998433, 'pawl', 'token.create', '01a1e528-7d61-7af9-b80f-d6cef60f14f7', '{"name":"admin.token"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380753877744263168, 1794845998519, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 'workflow.deploy', 'workflow:clerk', '{"version":"c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a","what":"created"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380753877765234688, 1794845998524, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 'source.create', 'source:prices', '{"version":"e91cd5a5fefca58361694fa338bd360209db599231ad12e3f8f71d3ddf051449"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380753877907841025, 1794845998558, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 'schedule.create', 'schedule:01a1e528-7ddf-70f3-a3b1-551a8bc75723', '{"graph":"agents:poet","name":"poet"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380753877924618240, 1794845998562, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 'schedule.run', 'schedule:01a1e528-7ddf-70f3-a3b1-551a8bc75723', NULL)
;
insert into audit_log (id, at, actor, action, subject, detail) values (380753878021087234, 1794845998585, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 'event.publish', 'workflow:clerk', '{"messageId":"o-1","topic":"order"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380753878121750528, 1794845998609, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 'workflow.pause', 'workflow:clerk', NULL)
;
insert into audit_log (id, at, actor, action, subject, detail) values (380753878134333442, 1794845998612, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 'event.publish', 'workflow:clerk', '{"messageId":"o-2","topic":"order"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380753878142722050, 1794845998614, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 'event.publish', 'workflow:clerk', '{"messageId":"o-3","topic":"order"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380753878151110657, 1794845998616, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 'job.create', 'job:380753878151110656', '{"key":"","lane":"","runAt":"2026-11-16T16:20:01.615Z","task":"http"}')
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at) values (380753878021087232, '01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'order', 1, 1, 'o-1', '"o-1"', 'consumed', '01a1e528-7dfb-751a-867d-096893cfd73c', 'admin', '[]', 0, 0, 1794845998585, 1794845998597)
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at) values (380753878071418880, '01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'entered', 1, 1, 'entered-o-1', '{"id":"o-1","count":1}', 'consumed', '01a1e528-7e06-7256-8ba5-2d68bdb20285', '01a1e528-7dfb-751a-867d-096893cfd73c', '[]', 0, 0, 1794845998597, 1794845998599)
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at) values (380753878134333440, '01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'order', 2, 2, 'o-2', '"o-2"', 'pending', NULL, 'admin', '[]', 0, 0, 1794845998612, 1794845998612)
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at) values (380753878142722048, '01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'order', 3, 3, 'o-3', '"o-3"', 'pending', NULL, 'admin', '[]', 0, 0, 1794845998614, 1794845998614)
;
insert into execution_requests (idempotency_key, request_hash, run_id, attempt, graph_id, grant_id, trace_id, ok, error_code, error_message, output, cost, remote, interrupt, cancel_at, owner, lease_until, created_at, updated_at, finished_at) values ('01a1e528-7ddf-70f3-a3b1-551a8bc75723:2026-11-16T16:19:58.562Z', 'a71ddb4718f6a8ef40780339babfbf33e72fd4aeec09bea3f65a5d6db1158392', '01a1e528-7de5-76af-b95a-16494db62593', 1, 'agents:poet', '01a1e528-7dde-7a8c-b24e-41a6c9a5b386', NULL, 1, NULL, NULL, '{"poem": "autumn"}', 0, '{"remote":{"attempt":1,"state":"over"},"scheduleId":"01a1e528-7ddf-70f3-a3b1-551a8bc75723","scheduledFor":"2026-11-16T16:19:58.562Z"}', NULL, NULL, NULL, NULL, 1794845998566, 1794845998568, 1794845998568)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner) values (380753877610045440, 0, -1, 1794849598495, 1, 0, 0, 0, 'pawl.prune', NULL, 'pawl.prune', '{}', 1794845998487, NULL, NULL, NULL, NULL, NULL, NULL, '')
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner) values (380753877614239744, 0, 0, 1794849598497, 1, 0, 0, 0, 'pawl.execution.sweep', NULL, 'pawl.execution.sweep', '{}', 1794845998488, NULL, NULL, NULL, NULL, NULL, NULL, '')
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner) values (380753877618434048, 0, 0, 1794846298497, 1, 0, 0, 0, 'pawl.workflow.sweep', NULL, 'pawl.workflow.sweep', '{}', 1794845998489, NULL, NULL, NULL, NULL, NULL, NULL, '')
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner) values (380753877622628353, 0, 0, 1794846298496, 1, 0, 0, 0, 'pawl.source.sweep', NULL, 'pawl.source.sweep', '{}', 1794845998490, NULL, NULL, NULL, NULL, NULL, NULL, '')
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner) values (380753877626822656, 0, 0, 1794846298495, 1, 0, 0, 0, 'reconcile_schedules', NULL, 'reconcile_schedules', '{}', 1794845998491, NULL, NULL, NULL, NULL, NULL, NULL, '')
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner) values (380753877765234689, 0, 0, 1794932398546, 1, 0, 0, 0, 'pawl.source', 'source:01a1e528-7dbd-7416-8315-18302dcbb150', 'source:01a1e528-7dbd-7416-8315-18302dcbb150', '{"source":"01a1e528-7dbd-7416-8315-18302dcbb150","name":"prices"}', 1794845998524, NULL, NULL, NULL, NULL, NULL, NULL, '')
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner) values (380753877907841024, 0, 0, 1798794000000, 0, 0, 0, 0, 'execute_scheduled_run', '01a1e528-7ddf-70f3-a3b1-551a8bc75723', '01a1e528-7ddf-70f3-a3b1-551a8bc75723:2027-01-01T09:00:00.000Z', '{"scheduleId":"01a1e528-7ddf-70f3-a3b1-551a8bc75723","scheduledFor":"2027-01-01T09:00:00.000Z"}', 1794845998558, NULL, NULL, NULL, NULL, NULL, NULL, '')
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner) values (380753878151110656, 0, 0, 1794846001615, 0, 0, 10, 0, 'http', NULL, NULL, '{"url":"http://upstream.invalid/later"}', 1794845998616, 'admin', NULL, NULL, NULL, NULL, NULL, '01a1e528-7d61-78cf-a9be-0bbddabc3426')
;
insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since) values ('workflow', 'clerk', '01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'clerk', '', 'Stopped', '', '', '', NULL)
;
insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since) values ('source', 'prices', '01a1e528-7dbd-7416-8315-18302dcbb150', 'prices', '', 'Idle', '', '', '', NULL)
;
insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since) values ('schedule', '01a1e528-7ddf-70f3-a3b1-551a8bc75723', '01a1e528-7ddf-70f3-a3b1-551a8bc75723', 'poet', '01a1e528-7d61-78cf-a9be-0bbddabc3426', 'Idle', '', '', '', NULL)
;
insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, title, state, can_reconcile, result, error_class, error_message, reconcile_attempts, last_reconcile_at, next_reconcile_at, resolved_by, resolved_at, created_at, updated_at, absent_at, kept_for) values ('01a1e528-7dfc-77e5-8b42-42139a262c1a', '01a1e528-7db7-749a-8ef3-4ea56e9bd25f', '01a1e528-7dfb-751a-867d-096893cfd73c', 1, 'book', 'append', '{"path":"book.txt","line":"o-1"}', '01a1e528-7dfc-77e8-8689-c8fa82c9f4bf', NULL, 'applied', 1, '{"path":"book.txt","offset":0,"size":4}', NULL, NULL, 0, NULL, NULL, 'answer', 1794845998595, 1794845998588, 1794845998595, 1794846058588, NULL)
;
insert into retries (kind, lane, retry_count, crash_count, period_start, next_retry_at, updated_at) values ('workflow', 'clerk', 0, 0, 1794845998519, NULL, 1794845998519)
;
insert into retries (kind, lane, retry_count, crash_count, period_start, next_retry_at, updated_at) values ('source', 'prices', 0, 0, 1794845998524, NULL, 1794845998524)
;
insert into run_logs (run_id, n, phase, at, level, text) values ('01a1e528-7dbe-7a52-b369-3c3e0f40e610', 0, 'emitting', 1794845998531, 'info', '0 entered')
;
insert into run_logs (run_id, n, phase, at, level, text) values ('01a1e528-7e06-7256-8ba5-2d68bdb20285', 0, 'emitting', 1794845998599, 'info', '1 entered')
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at) values ('01a1e528-7dbe-7a52-b369-3c3e0f40e610', 0, 'preparing', 'peek', '{"topic":"entered","limit":1000}', '[]', NULL, 0, 1794845998530)
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at) values ('01a1e528-7dcb-7aea-9d26-f1dd5988ff71', 0, 'preparing', 'peek', '{"topic":"order"}', '[]', NULL, 0, 1794845998543)
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at) values ('01a1e528-7dfb-751a-867d-096893cfd73c', 0, 'preparing', 'peek', '{"topic":"order"}', '[{"topic":"order","messageId":"o-1","payload":"o-1","status":"pending","attempt":0,"createdAt":"2026-11-16T16:19:58.585Z"}]', NULL, 0, 1794845998587)
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at) values ('01a1e528-7e06-7256-8ba5-2d68bdb20285', 0, 'preparing', 'peek', '{"topic":"entered","limit":1000}', '[{"topic":"entered","messageId":"entered-o-1","payload":{"id":"o-1","count":1},"status":"pending","attempt":0,"createdAt":"2026-11-16T16:19:58.597Z"}]', NULL, 0, 1794845998599)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e528-7dbe-7a52-b369-3c3e0f40e610', 'workflow', 'clerk', 'count', 'consumer', 'wake', NULL, 'committed', 'committed', 1, 1794845998519, '{"reservations":[{"topic":"entered","ids":[]}],"data":0}', NULL, NULL, NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1e528-7d61-773d-9bec-cce82cf00a46', 0, 1, 1794845998526, 1794845998531, 1794845998526, 1794845998531)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e528-7dcf-789e-a1f7-8de43008b0c1', 'source', 'prices', 'prices', 'source', 'schedule', NULL, 'committed', 'committed', 1, 1794845998524, NULL, NULL, NULL, NULL, NULL, NULL, 'e91cd5a5fefca58361694fa338bd360209db599231ad12e3f8f71d3ddf051449', '01a1e528-7d61-773d-9bec-cce82cf00a46', 0, 1, 1794845998543, 1794845998546, 1794845998543, 1794845998546)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e528-7dcb-7aea-9d26-f1dd5988ff71', 'workflow', 'clerk', 'enter', 'consumer', 'wake', NULL, 'committed', 'committed', 1, 1794845998519, '{"reservations":[],"data":{}}', NULL, NULL, NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1e528-7d61-773d-9bec-cce82cf00a46', 0, 1, 1794845998539, 1794845998544, 1794845998539, 1794845998544)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e528-7de5-76af-b95a-16494db62593', 'schedule', '01a1e528-7ddf-70f3-a3b1-551a8bc75723', 'poet', 'schedule', 'manual', NULL, 'committed', 'committed', 1, 1794845998562, NULL, NULL, '{"poem": "autumn"}', NULL, NULL, NULL, NULL, '01a1e528-7d61-773d-9bec-cce82cf00a46', 0, 1, 1794845998565, 1794845998569, 1794845998565, 1794845998569)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e528-7dfb-751a-867d-096893cfd73c', 'workflow', 'clerk', 'enter', 'consumer', 'event', NULL, 'committed', 'committed', 1, NULL, '{"reservations":[{"topic":"order","ids":["o-1"]}],"data":{"id":"o-1","count":1}}', '{"status":"applied","result":{"path":"book.txt","offset":0,"size":4}}', '{"count":1}', NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1e528-7d61-773d-9bec-cce82cf00a46', 0, 1, 1794845998587, 1794845998597, 1794845998587, 1794845998597)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e528-7e06-7256-8ba5-2d68bdb20285', 'workflow', 'clerk', 'count', 'consumer', 'event', NULL, 'committed', 'committed', 1, NULL, '{"reservations":[{"topic":"entered","ids":["entered-o-1"]}],"data":1}', '{"status":"none"}', NULL, NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1e528-7d61-773d-9bec-cce82cf00a46', 0, 1, 1794845998598, 1794845998599, 1794845998598, 1794845998599)
;
insert into source_definitions (id, name, definition, version, number, status, paused_at, deleting_at, revision, created_at, updated_at) values ('01a1e528-7dbd-7416-8315-18302dcbb150', 'prices', '{"name":"prices","url":"http://stall.invalid/prices","table":"prices","schedule":{"interval":"1d"},"status":"active","execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},"response":{"format":"json","fields":[{"source":"day","target":"day","type":"date"},{"source":"close","target":"close","type":"number"},{"source":"open","target":"open","type":"boolean"},{"source":"at","target":"at","type":"timestamp"},{"source":"extra","target":"extra","type":"json"}],"maxPages":10000,"maxBytes":1073741824},"write":{"mode":"append","key":["day"]}}', 'e91cd5a5fefca58361694fa338bd360209db599231ad12e3f8f71d3ddf051449', 1, 'active', NULL, NULL, 0, 1794845998524, 1794845998524)
;
insert into source_runs (run_id, source_id, version, definition, pages, requests, bytes, rows_read, rows_new, rows_changed, rows_same, rejects, note, started_at, updated_at) values ('01a1e528-7dcf-789e-a1f7-8de43008b0c1', '01a1e528-7dbd-7416-8315-18302dcbb150', 'e91cd5a5fefca58361694fa338bd360209db599231ad12e3f8f71d3ddf051449', '{"name":"prices","url":"http://stall.invalid/prices","table":"prices","schedule":{"interval":"1d"},"status":"active","execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},"response":{"format":"json","fields":[{"source":"day","target":"day","type":"date"},{"source":"close","target":"close","type":"number"},{"source":"open","target":"open","type":"boolean"},{"source":"at","target":"at","type":"timestamp"},{"source":"extra","target":"extra","type":"json"}],"maxPages":10000,"maxBytes":1073741824},"write":{"mode":"append","key":["day"]}}', 1, 1, 116, 1, 1, 0, 0, 0, NULL, 1794845998543, 1794845998546)
;
insert into source_state (source_id, last_success_at, last_attempt_at, last_failed, requested_at, mark, position, position_of, rows_total, failures_total, updated_at) values ('01a1e528-7dbd-7416-8315-18302dcbb150', 1794845998546, 1794845998543, 0, NULL, NULL, NULL, NULL, 1, 0, 1794845998546)
;
insert into source_versions (source_id, number, version, definition, created_at, created_by) values ('01a1e528-7dbd-7416-8315-18302dcbb150', 1, 'e91cd5a5fefca58361694fa338bd360209db599231ad12e3f8f71d3ddf051449', '{"name":"prices","url":"http://stall.invalid/prices","table":"prices","schedule":{"interval":"1d"},"status":"active","execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},"response":{"format":"json","fields":[{"source":"day","target":"day","type":"date"},{"source":"close","target":"close","type":"number"},{"source":"open","target":"open","type":"boolean"},{"source":"at","target":"at","type":"timestamp"},{"source":"extra","target":"extra","type":"json"}],"maxPages":10000,"maxBytes":1073741824},"write":{"mode":"append","key":["day"]}}', 1794845998524, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)')
;
insert into users (id, name, role, created_at) values ('01a1e528-7d61-78cf-a9be-0bbddabc3426', 'admin', 'admin', 1794845998433)
;
insert into billing_accounts (id, owner_id, name, key_ref, balance, created_at) values ('a72c78c9-2764-55e9-8b8a-0dfe78647ddb', '01a1e528-7d61-78cf-a9be-0bbddabc3426', 'default', NULL, NULL, 1794845998558)
;
insert into execution_grants (id, user_id, billing_account_id, scopes, usd_per_day, usd_per_run, runs_per_day, wildcard_consent_at, automatic, expires_at, revoked_at, created_at) values ('01a1e528-7dde-7a8c-b24e-41a6c9a5b386', '01a1e528-7d61-78cf-a9be-0bbddabc3426', 'a72c78c9-2764-55e9-8b8a-0dfe78647ddb', '["graph:execute:agents:poet"]', NULL, NULL, NULL, NULL, 1, NULL, NULL, 1794845998558)
;
insert into schedules (id, name, owner_user_id, execution_grant_id, graph_id, input, cron, timezone, concurrency_policy, enabled, labels, revision, issue, next_run_at, last_run_at, created_at, updated_at, deleted_at) values ('01a1e528-7ddf-70f3-a3b1-551a8bc75723', 'poet', '01a1e528-7d61-78cf-a9be-0bbddabc3426', '01a1e528-7dde-7a8c-b24e-41a6c9a5b386', 'agents:poet', '{}', '0 9 1 1 *', 'UTC', 'Queue', 1, '{}', 0, NULL, 1798794000000, 1794845998565, 1794845998558, 1794845998558, NULL)
;
insert into schedule_runs (id, schedule_id, run_id, scheduled_for, started_at, completed_at, status, disposition, attempt_count, langfuse_trace_id, error_code, error_message, cost, trigger, backfill_id, grant_id, revision, into_slot, created_at, updated_at) values ('01a1e528-7ddf-7914-a06a-4073c30b58af', '01a1e528-7ddf-70f3-a3b1-551a8bc75723', '', 1798794000000, NULL, NULL, 'pending', NULL, 0, NULL, NULL, NULL, 0, 'schedule', NULL, NULL, 0, NULL, 1794845998558, 1794845998558)
;
insert into schedule_runs (id, schedule_id, run_id, scheduled_for, started_at, completed_at, status, disposition, attempt_count, langfuse_trace_id, error_code, error_message, cost, trigger, backfill_id, grant_id, revision, into_slot, created_at, updated_at) values ('01a1e528-7de2-776f-9157-e698222c370e', '01a1e528-7ddf-70f3-a3b1-551a8bc75723', '01a1e528-7de5-76af-b95a-16494db62593', 1794845998562, 1794845998565, 1794845998569, 'success', 'fired', 1, NULL, NULL, NULL, 0, 'manual', NULL, '01a1e528-7dde-7a8c-b24e-41a6c9a5b386', 0, NULL, 1794845998562, 1794845998569)
;
insert into schedule_versions (schedule_id, revision, graph_id, input, cron, timezone, enabled, created_at, created_by) values ('01a1e528-7ddf-70f3-a3b1-551a8bc75723', 0, 'agents:poet', '{}', '0 9 1 1 *', 'UTC', 1, 1794845998558, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)')
;
insert into workflow_rights (workflow_id, tool, method, how, subject, created_by, created_at) values ('01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'book', 'append', 'declared', 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', NULL, 1794845998519)
;
insert into workflows (id, name, lane, desired, version, revision, cleared_run, created_at, updated_at, deployed_at, deleted_at) values ('01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'clerk', 'clerk', 'paused', 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', 2, NULL, 1794845998519, 1794845998609, 1794845998519, NULL)
;
insert into handler_state (workflow_id, handler, state, wake_at, updated_at) values ('01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'enter', '{"count":1}', NULL, 1794845998597)
;
insert into handler_state (workflow_id, handler, state, wake_at, updated_at) values ('01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'count', NULL, NULL, 1794845998531)
;
insert into topics (workflow_id, name, seq, subscribed, created_at) values ('01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'entered', 1, 1, 1794845998519)
;
insert into topics (workflow_id, name, seq, subscribed, created_at) values ('01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'order', 3, 1, 1794845998519)
;
insert into workflow_versions (workflow_id, version, number, filename, source, config, created_at, created_by, confined) values ('01a1e528-7db7-749a-8ef3-4ea56e9bd25f', 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', 1, 'clerk.workflow.ts', 'import { workflow } from "pawl";
export default workflow({
  name: "clerk",
  topics: { order: {}, entered: {} },
  consumers: {
    enter: {
      subscribe: ["order"],
      publishes: ["entered"],
      async prepare(ctx, state: { count: number } | undefined) {
        const [order] = await ctx.peek("order");
        if (!order) return { reservations: [], data: {} };
        return { reservations: [{ topic: "order", ids: [order.messageId] }], data: { id: order.messageId, count: (state?.count ?? 0) + 1 } };
      },
      async mutate(ctx, prepared) {
        await ctx.tools.book.append({ path: "book.txt", line: prepared.data.id });
      },
      next(ctx, prepared, result) {
        if (result.status !== "applied") return;
        ctx.publish("entered", { messageId: "entered-" + prepared.data.id, payload: prepared.data });
        return { count: prepared.data.count };
      },
    },
    count: {
      subscribe: ["entered"],
      async prepare(ctx, state) {
        const list = await ctx.peek("entered", { limit: 1000 });
        return { reservations: [{ topic: "entered", ids: list.map((e) => e.messageId) }], data: list.length };
      },
      next(ctx, prepared, result) { ctx.log(prepared.data, "entered"); },
    },
  },
});
', '{"name":"clerk","topics":["entered","order"],"consumers":[{"name":"enter","subscribe":["order"],"publishes":["entered"],"hasMutate":true,"hasNext":true},{"name":"count","subscribe":["entered"],"hasMutate":false,"hasNext":true}]}', 1794845998519, 'admin (token 01a1e528-7d61-7af9-b80f-d6cef60f14f7)', 0)
;
