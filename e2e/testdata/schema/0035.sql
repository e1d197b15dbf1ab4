insert into audit_log (id, at, actor, action, subject, detail) values (381580481962393600, 1795043076322, 'pawl', 'token.create', '01a1f0e7-a8e3-7259-96a0-04c7c80a819b', '{"name":"admin.token"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (381580483724001280, 1795043076742, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 'workflow.deploy', 'workflow:clerk', '{"version":"c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a","what":"created"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (381580483812081664, 1795043076763, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 'source.create', 'source:prices', '{"version":"d6891178bdc6ab8cda2699467890e9ea10ae8d956d1faaee3ee4e176ce12c59f"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (381580484025991169, 1795043076814, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 'schedule.create', 'schedule:01a1f0e7-aace-7f14-964c-c28bb9b3e71d', '{"graph":"agents:poet","name":"poet"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (381580484034379776, 1795043076816, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 'schedule.run', 'schedule:01a1f0e7-aace-7f14-964c-c28bb9b3e71d', NULL)
;
insert into audit_log (id, at, actor, action, subject, detail) values (381580484135043074, 1795043076840, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 'event.publish', 'workflow:clerk', '{"messageId":"o-1","topic":"order"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (381580484235706368, 1795043076864, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 'workflow.pause', 'workflow:clerk', NULL)
;
insert into audit_log (id, at, actor, action, subject, detail) values (381580484248289282, 1795043076867, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 'event.publish', 'workflow:clerk', '{"messageId":"o-2","topic":"order"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (381580484256677890, 1795043076869, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 'event.publish', 'workflow:clerk', '{"messageId":"o-3","topic":"order"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (381580484260872193, 1795043076870, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 'job.create', 'job:381580484260872192', '{"key":"","lane":"","runAt":"2026-11-18T23:04:39.869Z","task":"http"}')
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at, part) values (381580484135043072, '01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'order', 1, 1, 'o-1', '"o-1"', 'consumed', '01a1f0e7-aaea-75a7-8b2a-9f4c6b3ca87e', 'admin', '[]', 0, 0, 1795043076840, 1795043076856, NULL)
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at, part) values (381580484202151936, '01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'entered', 1, 1, 'entered-o-1', '{"id":"o-1","count":1}', 'consumed', '01a1f0e7-aaf8-7a1b-b74a-37e38c8c3b1f', '01a1f0e7-aaea-75a7-8b2a-9f4c6b3ca87e', '[]', 0, 0, 1795043076856, 1795043076857, NULL)
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at, part) values (381580484248289280, '01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'order', 2, 2, 'o-2', '"o-2"', 'pending', NULL, 'admin', '[]', 0, 0, 1795043076867, 1795043076867, NULL)
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at, part) values (381580484256677888, '01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'order', 3, 3, 'o-3', '"o-3"', 'pending', NULL, 'admin', '[]', 0, 0, 1795043076869, 1795043076869, NULL)
;
insert into execution_requests (idempotency_key, request_hash, run_id, attempt, graph_id, grant_id, trace_id, ok, error_code, error_message, output, cost, remote, interrupt, cancel_at, owner, lease_until, created_at, updated_at, finished_at) values ('01a1f0e7-aace-7f14-964c-c28bb9b3e71d:2026-11-18T23:04:36.816Z', '8f18b4b419f58abdba6b22cf49a60bc34953cc5559ca47dd30eaea9fa2e5caf6', '01a1f0e7-aad3-713f-a09e-e0d3fb0a806e', 1, 'agents:poet', '01a1f0e7-aace-7c71-a4bb-08cbd99ba020', NULL, 1, NULL, NULL, '{"poem": "autumn"}', 0, '{"remote":{"attempt":1,"state":"over"},"scheduleId":"01a1f0e7-aace-7f14-964c-c28bb9b3e71d","scheduledFor":"2026-11-18T23:04:36.816Z"}', NULL, NULL, NULL, NULL, 1795043076820, 1795043076821, 1795043076821)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (381580483099049984, 0, -1, 1795046676734, 1, 0, 0, 0, 'pawl.prune', NULL, 'pawl.prune', '{}', 1795043076593, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (381580483107438592, 0, 0, 1795043081601, 1, 0, 0, 0, 'pawl.expect', NULL, 'pawl.expect', '{}', 1795043076595, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (381580483124215808, 0, 0, 1795046676659, 1, 0, 0, 0, 'pawl.execution.sweep', NULL, 'pawl.execution.sweep', '{}', 1795043076599, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (381580483128410112, 0, 0, 1795043376659, 1, 0, 0, 0, 'pawl.workflow.sweep', NULL, 'pawl.workflow.sweep', '{}', 1795043076600, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (381580483388456960, 0, 0, 1795043376664, 1, 0, 0, 0, 'pawl.source.sweep', NULL, 'pawl.source.sweep', '{}', 1795043076662, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (381580483396845568, 0, 0, 1795043376672, 1, 0, 0, 0, 'reconcile_schedules', NULL, 'reconcile_schedules', '{}', 1795043076664, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (381580483812081665, 0, 0, 1795129476796, 1, 0, 0, 0, 'pawl.source', 'source:01a1f0e7-aa9c-75b9-be81-d1ea1db1297b', 'source:01a1f0e7-aa9c-75b9-be81-d1ea1db1297b', '{"source":"01a1f0e7-aa9c-75b9-be81-d1ea1db1297b","name":"prices"}', 1795043076763, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (381580484025991168, 0, 0, 1798794000000, 0, 0, 0, 0, 'execute_scheduled_run', '01a1f0e7-aace-7f14-964c-c28bb9b3e71d', '01a1f0e7-aace-7f14-964c-c28bb9b3e71d:2027-01-01T09:00:00.000Z', '{"scheduleId":"01a1f0e7-aace-7f14-964c-c28bb9b3e71d","scheduledFor":"2027-01-01T09:00:00.000Z"}', 1795043076814, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (381580484260872192, 0, 0, 1795043079869, 0, 0, 10, 0, 'http', NULL, NULL, '{"url":"http://upstream.invalid/later"}', 1795043076870, 'admin', NULL, NULL, NULL, NULL, NULL, '01a1f0e7-a8e3-7006-901a-ed4576042753', NULL)
;
insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since, keep, expect, expected, paused_at, paused_until, paused_by, paused_note) values ('workflow', 'clerk', '01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'clerk', '', 'Stopped', '', '', '', NULL, '', '', '', 1795043076864, NULL, 'admin', '')
;
insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since, keep, expect, expected, paused_at, paused_until, paused_by, paused_note) values ('source', 'prices', '01a1f0e7-aa9c-75b9-be81-d1ea1db1297b', 'prices', '', 'Idle', '', '', '', NULL, '', '', '', NULL, NULL, '', '')
;
insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since, keep, expect, expected, paused_at, paused_until, paused_by, paused_note) values ('schedule', '01a1f0e7-aace-7f14-964c-c28bb9b3e71d', '01a1f0e7-aace-7f14-964c-c28bb9b3e71d', 'poet', '01a1f0e7-a8e3-7006-901a-ed4576042753', 'Idle', '', '', '', NULL, '', '', '', NULL, NULL, '', '')
;
insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, title, state, can_reconcile, result, error_class, error_message, reconcile_attempts, last_reconcile_at, next_reconcile_at, resolved_by, resolved_at, created_at, updated_at, absent_at, kept_for) values ('01a1f0e7-aaec-7603-97c5-ad670f868432', '01a1f0e7-aa87-72f4-bff6-21554ee37bfc', '01a1f0e7-aaea-75a7-8b2a-9f4c6b3ca87e', 1, 'book', 'append', '{"path":"book.txt","line":"o-1"}', '01a1f0e7-aaec-7605-a95b-4ac4a1e1574f', NULL, 'applied', 1, '{"path":"book.txt","offset":0,"size":4}', NULL, NULL, 0, NULL, NULL, 'answer', 1795043076851, 1795043076844, 1795043076851, 1795043136844, NULL)
;
insert into retention_clock (id, at) values (1, 1795043076635)
;
insert into retries (kind, lane, retry_count, crash_count, period_start, next_retry_at, updated_at) values ('workflow', 'clerk', 0, 0, 1795043076742, NULL, 1795043076742)
;
insert into retries (kind, lane, retry_count, crash_count, period_start, next_retry_at, updated_at) values ('source', 'prices', 0, 0, 1795043076763, NULL, 1795043076763)
;
insert into run_logs (run_id, n, phase, at, level, text) values ('01a1f0e7-aa8c-7739-81b8-11c80b833cb4', 0, 'emitting', 1795043076785, 'info', '0 entered')
;
insert into run_logs (run_id, n, phase, at, level, text) values ('01a1f0e7-aaf8-7a1b-b74a-37e38c8c3b1f', 0, 'emitting', 1795043076857, 'info', '1 entered')
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at, content) values ('01a1f0e7-aa8c-7739-81b8-11c80b833cb4', 0, 'preparing', 'peek', '{"topic":"entered","limit":1000}', '[]', NULL, 0, 1795043076768, NULL)
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at, content) values ('01a1f0e7-aab2-7056-b7f6-e8cd93f9501a', 0, 'preparing', 'peek', '{"topic":"order"}', '[]', NULL, 0, 1795043076786, NULL)
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at, content) values ('01a1f0e7-aaea-75a7-8b2a-9f4c6b3ca87e', 0, 'preparing', 'peek', '{"topic":"order"}', '[{"topic":"order","messageId":"o-1","payload":"o-1","status":"pending","attempt":0,"createdAt":"2026-11-18T23:04:36.840Z"}]', NULL, 0, 1795043076843, NULL)
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at, content) values ('01a1f0e7-aaf8-7a1b-b74a-37e38c8c3b1f', 0, 'preparing', 'peek', '{"topic":"entered","limit":1000}', '[{"topic":"entered","messageId":"entered-o-1","payload":{"id":"o-1","count":1},"status":"pending","attempt":0,"createdAt":"2026-11-18T23:04:36.856Z"}]', NULL, 0, 1795043076857, NULL)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at, folded_at, through_at, run_count) values ('01a1f0e7-aa8c-7739-81b8-11c80b833cb4', 'workflow', 'clerk', 'count', 'consumer', 'wake', NULL, 'committed', 'committed', 1, 1795043076742, '{"reservations":[{"topic":"entered","ids":[]}],"data":0}', NULL, NULL, NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1f0e7-a8e2-7d6f-a445-061e1c31a3b3', 0, 1, 1795043076748, 1795043076785, 1795043076748, 1795043076785, NULL, NULL, NULL)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at, folded_at, through_at, run_count) values ('01a1f0e7-aab2-7056-b7f6-e8cd93f9501a', 'workflow', 'clerk', 'enter', 'consumer', 'wake', NULL, 'committed', 'committed', 1, 1795043076742, '{"reservations":[],"data":{}}', NULL, NULL, NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1f0e7-a8e2-7d6f-a445-061e1c31a3b3', 0, 1, 1795043076786, 1795043076786, 1795043076786, 1795043076786, NULL, NULL, NULL)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at, folded_at, through_at, run_count) values ('01a1f0e7-aab3-7863-b8b1-161a21ee0d9a', 'source', 'prices', 'prices', 'source', 'schedule', NULL, 'committed', 'committed', 1, 1795043076763, NULL, NULL, NULL, NULL, NULL, NULL, 'd6891178bdc6ab8cda2699467890e9ea10ae8d956d1faaee3ee4e176ce12c59f', '01a1f0e7-a8e2-7d6f-a445-061e1c31a3b3', 0, 1, 1795043076787, 1795043076796, 1795043076787, 1795043076796, NULL, NULL, NULL)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at, folded_at, through_at, run_count) values ('01a1f0e7-aad3-713f-a09e-e0d3fb0a806e', 'schedule', '01a1f0e7-aace-7f14-964c-c28bb9b3e71d', 'poet', 'schedule', 'manual', NULL, 'committed', 'committed', 1, 1795043076816, NULL, NULL, '{"poem": "autumn"}', NULL, NULL, NULL, NULL, '01a1f0e7-a8e2-7d6f-a445-061e1c31a3b3', 0, 1, 1795043076818, 1795043076822, 1795043076818, 1795043076822, NULL, NULL, NULL)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at, folded_at, through_at, run_count) values ('01a1f0e7-aaea-75a7-8b2a-9f4c6b3ca87e', 'workflow', 'clerk', 'enter', 'consumer', 'event', NULL, 'committed', 'committed', 1, NULL, '{"reservations":[{"topic":"order","ids":["o-1"]}],"data":{"id":"o-1","count":1}}', '{"status":"applied","result":{"path":"book.txt","offset":0,"size":4}}', '{"count":1}', NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1f0e7-a8e2-7d6f-a445-061e1c31a3b3', 0, 1, 1795043076842, 1795043076856, 1795043076842, 1795043076856, NULL, NULL, NULL)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at, folded_at, through_at, run_count) values ('01a1f0e7-aaf8-7a1b-b74a-37e38c8c3b1f', 'workflow', 'clerk', 'count', 'consumer', 'event', NULL, 'committed', 'committed', 1, NULL, '{"reservations":[{"topic":"entered","ids":["entered-o-1"]}],"data":1}', '{"status":"none"}', NULL, NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1f0e7-a8e2-7d6f-a445-061e1c31a3b3', 0, 1, 1795043076856, 1795043076857, 1795043076856, 1795043076857, NULL, NULL, NULL)
;
insert into source_definitions (id, name, definition, version, number, status, paused_at, deleting_at, revision, created_at, updated_at) values ('01a1f0e7-aa9c-75b9-be81-d1ea1db1297b', 'prices', '{"name":"prices","url":"http://stall.invalid/prices","table":"prices","schedule":{"interval":"1d"},"status":"active","execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},"response":{"format":"json","fields":[{"source":"day","target":"day","type":"date"},{"source":"close","target":"close","type":"number"},{"source":"open","target":"open","type":"boolean"},{"source":"at","target":"at","type":"timestamp"},{"source":"extra","target":"extra","type":"json"}],"maxPages":10000,"maxBytes":1073741824},"write":{"mode":"append","key":["day"]}}', 'd6891178bdc6ab8cda2699467890e9ea10ae8d956d1faaee3ee4e176ce12c59f', 1, 'active', NULL, NULL, 0, 1795043076763, 1795043076763)
;
insert into source_runs (run_id, source_id, version, definition, pages, requests, bytes, rows_read, rows_new, rows_changed, rows_same, rejects, note, started_at, updated_at) values ('01a1f0e7-aab3-7863-b8b1-161a21ee0d9a', '01a1f0e7-aa9c-75b9-be81-d1ea1db1297b', 'd6891178bdc6ab8cda2699467890e9ea10ae8d956d1faaee3ee4e176ce12c59f', '{"name":"prices","url":"http://stall.invalid/prices","table":"prices","schedule":{"interval":"1d"},"status":"active","execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},"response":{"format":"json","fields":[{"source":"day","target":"day","type":"date"},{"source":"close","target":"close","type":"number"},{"source":"open","target":"open","type":"boolean"},{"source":"at","target":"at","type":"timestamp"},{"source":"extra","target":"extra","type":"json"}],"maxPages":10000,"maxBytes":1073741824},"write":{"mode":"append","key":["day"]}}', 1, 1, 116, 1, 1, 0, 0, 0, NULL, 1795043076787, 1795043076796)
;
insert into source_state (source_id, last_success_at, last_attempt_at, last_failed, requested_at, mark, position, position_of, rows_total, failures_total, updated_at, plan, stood_for) values ('01a1f0e7-aa9c-75b9-be81-d1ea1db1297b', 1795043076796, 1795043076787, 0, NULL, NULL, NULL, NULL, 1, 0, 1795043076796, NULL, 1795043076763)
;
insert into source_versions (source_id, number, version, definition, created_at, created_by) values ('01a1f0e7-aa9c-75b9-be81-d1ea1db1297b', 1, 'd6891178bdc6ab8cda2699467890e9ea10ae8d956d1faaee3ee4e176ce12c59f', '{"name":"prices","url":"http://stall.invalid/prices","table":"prices","schedule":{"interval":"1d"},"status":"active","execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},"response":{"format":"json","fields":[{"source":"day","target":"day","type":"date"},{"source":"close","target":"close","type":"number"},{"source":"open","target":"open","type":"boolean"},{"source":"at","target":"at","type":"timestamp"},{"source":"extra","target":"extra","type":"json"}],"maxPages":10000,"maxBytes":1073741824},"write":{"mode":"append","key":["day"]}}', 1795043076763, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)')
;
insert into storage_days (name, day, at, row_count, bytes) values ('_rejects', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('approval_rules', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('approvals', 20775, 1795043076730, 0, 24576)
;
insert into storage_days (name, day, at, row_count, bytes) values ('audit_log', 20775, 1795043076730, 1, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('backfills', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('billing_accounts', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('buckets', 20775, 1795043076730, 1, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('calendar_versions', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('calendars', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('charge_days', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('charge_receipts', 20775, 1795043076730, 0, 24576)
;
insert into storage_days (name, day, at, row_count, bytes) values ('charge_reservations', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('door_watch', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('event_causes', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('event_tombs', 20775, 1795043076730, 0, 4096)
;
insert into storage_days (name, day, at, row_count, bytes) values ('events', 20775, 1795043076730, 0, 28672)
;
insert into storage_days (name, day, at, row_count, bytes) values ('execution_grants', 20775, 1795043076730, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('execution_requests', 20775, 1795043076730, 0, 20480)
;
insert into storage_days (name, day, at, row_count, bytes) values ('graph_questions', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('halts', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('handler_state', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('hook_deliveries', 20775, 1795043076730, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('hooks', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('idempotency_keys', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('inputs', 20775, 1795043076730, 0, 20480)
;
insert into storage_days (name, day, at, row_count, bytes) values ('job_history', 20775, 1795043076730, 0, 32768)
;
insert into storage_days (name, day, at, row_count, bytes) values ('job_leases', 20775, 1795043076730, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('job_results', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('jobs', 20775, 1795043076730, 6, 40960)
;
insert into storage_days (name, day, at, row_count, bytes) values ('lanes', 20775, 1795043076730, 0, 20480)
;
insert into storage_days (name, day, at, row_count, bytes) values ('mutation_inputs', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('mutations', 20775, 1795043076730, 0, 28672)
;
insert into storage_days (name, day, at, row_count, bytes) values ('needs', 20775, 1795043076730, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('nodes', 20775, 1795043076730, 1, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('partition_sorts', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('partitions', 20775, 1795043076730, 0, 32768)
;
insert into storage_days (name, day, at, row_count, bytes) values ('producer_schedules', 20775, 1795043076730, 0, 20480)
;
insert into storage_days (name, day, at, row_count, bytes) values ('promotions', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('rate_limiter_state', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('read_contents', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('relay_batches', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('repairs', 20775, 1795043076730, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('retention_clock', 20775, 1795043076730, 1, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('retention_floors', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('retention_leaps', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('retries', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('run_logs', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('run_reads', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('runs', 20775, 1795043076730, 0, 53248)
;
insert into storage_days (name, day, at, row_count, bytes) values ('schedule_runs', 20775, 1795043076730, 0, 36864)
;
insert into storage_days (name, day, at, row_count, bytes) values ('schedule_versions', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('schedules', 20775, 1795043076730, 0, 24576)
;
insert into storage_days (name, day, at, row_count, bytes) values ('schema_migrations', 20775, 1795043076730, 35, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('served_tasks', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('source_definitions', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('source_runs', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('source_state', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('source_versions', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('storage_days', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('tokens', 20775, 1795043076730, 1, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('topics', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('users', 20775, 1795043076730, 1, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('worker_clock', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('worker_starts', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('worker_tasks', 20775, 1795043076730, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('workflow_rights', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('workflow_versions', 20775, 1795043076730, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('workflows', 20775, 1795043076730, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('write_probe', 20775, 1795043076730, 0, 8192)
;
insert into users (id, name, role, created_at) values ('01a1f0e7-a8e3-7006-901a-ed4576042753', 'admin', 'admin', 1795043076322)
;
insert into billing_accounts (id, owner_id, name, key_ref, balance, created_at, timezone) values ('74ea114e-e789-544a-8c31-14c9cbc3191f', '01a1f0e7-a8e3-7006-901a-ed4576042753', 'default', NULL, NULL, 1795043076814, NULL)
;
insert into execution_grants (id, user_id, billing_account_id, scopes, usd_per_day, usd_per_run, runs_per_day, wildcard_consent_at, automatic, expires_at, revoked_at, created_at) values ('01a1f0e7-aace-7c71-a4bb-08cbd99ba020', '01a1f0e7-a8e3-7006-901a-ed4576042753', '74ea114e-e789-544a-8c31-14c9cbc3191f', '["graph:execute:agents:poet"]', 500000000, NULL, NULL, NULL, 1, NULL, NULL, 1795043076814)
;
insert into schedules (id, name, owner_user_id, graph_id, input, cron, timezone, concurrency_policy, enabled, labels, revision, issue, next_run_at, last_run_at, created_at, updated_at, deleted_at, timing, max_runs, begun, ended, execution_grant_id, rules, capped_until) values ('01a1f0e7-aace-7f14-964c-c28bb9b3e71d', 'poet', '01a1f0e7-a8e3-7006-901a-ed4576042753', 'agents:poet', '{}', '0 9 1 1 *', 'UTC', 'Queue', 1, '{}', 0, NULL, 1798794000000, 1795043076818, 1795043076814, 1795043076814, NULL, NULL, NULL, 0, 0, '01a1f0e7-aace-7c71-a4bb-08cbd99ba020', NULL, NULL)
;
insert into schedule_runs (id, schedule_id, run_id, scheduled_for, started_at, completed_at, status, disposition, attempt_count, langfuse_trace_id, error_code, error_message, cost, trigger, backfill_id, grant_id, revision, into_slot, created_at, updated_at, doubt, by_person, through_at, instants, waits_since) values ('01a1f0e7-aacf-73a0-a29f-0da616f868a4', '01a1f0e7-aace-7f14-964c-c28bb9b3e71d', '', 1798794000000, NULL, NULL, 'pending', NULL, 0, NULL, NULL, NULL, 0, 'schedule', NULL, NULL, 0, NULL, 1795043076814, 1795043076814, NULL, NULL, NULL, NULL, NULL)
;
insert into schedule_runs (id, schedule_id, run_id, scheduled_for, started_at, completed_at, status, disposition, attempt_count, langfuse_trace_id, error_code, error_message, cost, trigger, backfill_id, grant_id, revision, into_slot, created_at, updated_at, doubt, by_person, through_at, instants, waits_since) values ('01a1f0e7-aad1-7560-b2cf-3d900b8be3d5', '01a1f0e7-aace-7f14-964c-c28bb9b3e71d', '01a1f0e7-aad3-713f-a09e-e0d3fb0a806e', 1795043076816, 1795043076818, 1795043076822, 'success', 'fired', 1, NULL, NULL, NULL, 0, 'manual', NULL, '01a1f0e7-aace-7c71-a4bb-08cbd99ba020', 0, NULL, 1795043076816, 1795043076822, NULL, NULL, NULL, NULL, NULL)
;
insert into schedule_versions (schedule_id, revision, graph_id, input, cron, timezone, enabled, created_at, created_by, timing, rules) values ('01a1f0e7-aace-7f14-964c-c28bb9b3e71d', 0, 'agents:poet', '{}', '0 9 1 1 *', 'UTC', 1, 1795043076814, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', NULL, NULL)
;
insert into workflow_rights (workflow_id, tool, method, how, subject, created_by, created_at) values ('01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'book', 'append', 'declared', 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', NULL, 1795043076742)
;
insert into workflows (id, name, lane, desired, version, revision, cleared_run, created_at, updated_at, deployed_at, deleted_at, partitioned) values ('01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'clerk', 'clerk', 'paused', 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', 2, NULL, 1795043076742, 1795043076864, 1795043076742, NULL, 0)
;
insert into handler_state (workflow_id, handler, state, wake_at, updated_at) values ('01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'enter', '{"count":1}', NULL, 1795043076856)
;
insert into handler_state (workflow_id, handler, state, wake_at, updated_at) values ('01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'count', NULL, NULL, 1795043076785)
;
insert into topics (workflow_id, name, seq, subscribed, created_at, forgotten) values ('01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'entered', 1, 1, 1795043076742, 0)
;
insert into topics (workflow_id, name, seq, subscribed, created_at, forgotten) values ('01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'order', 3, 1, 1795043076742, 0)
;
insert into workflow_versions (workflow_id, version, number, filename, source, config, created_at, created_by, confined) values ('01a1f0e7-aa87-72f4-bff6-21554ee37bfc', 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', 1, 'clerk.workflow.ts', 'import { workflow } from "pawl";
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
', '{"name":"clerk","topics":["entered","order"],"consumers":[{"name":"enter","subscribe":["order"],"publishes":["entered"],"hasMutate":true,"hasNext":true},{"name":"count","subscribe":["entered"],"hasMutate":false,"hasNext":true}]}', 1795043076742, 'admin (token 01a1f0e7-a8e3-7259-96a0-04c7c80a819b)', 0)
;
