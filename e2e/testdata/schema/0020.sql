insert into audit_log (id, at, actor, action, subject, detail) values (380795074644549632, 1794855820625, 'pawl', 'token.create', '01a1e5be-5d51-7298-8bc4-faf89a0c8350', '{"name":"admin.token"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380795075147866112, 1794855820745, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 'workflow.deploy', 'workflow:clerk', '{"version":"c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a","what":"created"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380795075173031936, 1794855820751, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 'source.create', 'source:prices', '{"version":"fdd3c25f65155e60d19bcb30317bf913c5d11b2a287134bea21103694a65f7a3"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380795075315638273, 1794855820785, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 'schedule.create', 'schedule:01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', '{"graph":"agents:poet","name":"poet"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380795075336609792, 1794855820790, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 'schedule.run', 'schedule:01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', NULL)
;
insert into audit_log (id, at, actor, action, subject, detail) values (380795075441467394, 1794855820815, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 'event.publish', 'workflow:clerk', '{"messageId":"o-1","topic":"order"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380795075550519296, 1794855820841, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 'workflow.pause', 'workflow:clerk', NULL)
;
insert into audit_log (id, at, actor, action, subject, detail) values (380795075567296514, 1794855820845, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 'event.publish', 'workflow:clerk', '{"messageId":"o-2","topic":"order"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380795075579879426, 1794855820848, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 'event.publish', 'workflow:clerk', '{"messageId":"o-3","topic":"order"}')
;
insert into audit_log (id, at, actor, action, subject, detail) values (380795075596656641, 1794855820852, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 'job.create', 'job:380795075596656640', '{"key":"","lane":"","runAt":"2026-11-16T19:03:43.850Z","task":"http"}')
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at) values (380795075441467392, '01a1e5be-5dc9-7905-b318-86e44843cabf', 'order', 1, 1, 'o-1', '"o-1"', 'consumed', '01a1e5be-5e12-748a-aab6-eb571d4df676', 'admin', '[]', 0, 0, 1794855820815, 1794855820830)
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at) values (380795075504381952, '01a1e5be-5dc9-7905-b318-86e44843cabf', 'entered', 1, 1, 'entered-o-1', '{"id":"o-1","count":1}', 'consumed', '01a1e5be-5e1f-7263-8e85-75949a536855', '01a1e5be-5e12-748a-aab6-eb571d4df676', '[]', 0, 0, 1794855820830, 1794855820832)
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at) values (380795075567296512, '01a1e5be-5dc9-7905-b318-86e44843cabf', 'order', 2, 2, 'o-2', '"o-2"', 'pending', NULL, 'admin', '[]', 0, 0, 1794855820845, 1794855820845)
;
insert into events (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, reserved_by, created_by, caused_by, attempt, duplicates, created_at, updated_at) values (380795075579879424, '01a1e5be-5dc9-7905-b318-86e44843cabf', 'order', 3, 3, 'o-3', '"o-3"', 'pending', NULL, 'admin', '[]', 0, 0, 1794855820848, 1794855820848)
;
insert into execution_requests (idempotency_key, request_hash, run_id, attempt, graph_id, grant_id, trace_id, ok, error_code, error_message, output, cost, remote, interrupt, cancel_at, owner, lease_until, created_at, updated_at, finished_at) values ('01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c:2026-11-16T19:03:40.790Z', '184cb2b041d93480ef7bd11c7c32e1c4093fd164a22f531ae28a02f6eabd6bf3', '01a1e5be-5df8-7bd3-93ff-9873467a619a', 1, 'agents:poet', '01a1e5be-5df2-70cc-bcae-afbade053ea3', NULL, 1, NULL, NULL, '{"poem": "autumn"}', 0, '{"remote":{"attempt":1,"state":"over"},"scheduleId":"01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c","scheduledFor":"2026-11-16T19:03:40.790Z"}', NULL, NULL, NULL, NULL, 1794855820793, 1794855820795, 1794855820795)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (380795074942345216, 0, -1, 1794859420763, 1, 0, 0, 0, 'pawl.prune', NULL, 'pawl.prune', '{}', 1794855820696, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (380795074946539520, 0, 0, 1794859420707, 1, 0, 0, 0, 'pawl.execution.sweep', NULL, 'pawl.execution.sweep', '{}', 1794855820697, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (380795074950733824, 0, 0, 1794856120705, 1, 0, 0, 0, 'pawl.workflow.sweep', NULL, 'pawl.workflow.sweep', '{}', 1794855820698, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (380795074971705344, 0, 0, 1794856120707, 1, 0, 0, 0, 'pawl.source.sweep', NULL, 'pawl.source.sweep', '{}', 1794855820703, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (380795074984288256, 0, 0, 1794856120708, 1, 0, 0, 0, 'reconcile_schedules', NULL, 'reconcile_schedules', '{}', 1794855820706, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (380795075173031937, 0, 0, 1794942220777, 1, 0, 0, 0, 'pawl.source', 'source:01a1e5be-5dd1-74b4-8ef0-1c7098248b11', 'source:01a1e5be-5dd1-74b4-8ef0-1c7098248b11', '{"source":"01a1e5be-5dd1-74b4-8ef0-1c7098248b11","name":"prices"}', 1794855820751, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (380795075315638272, 0, 0, 1798794000000, 0, 0, 0, 0, 'execute_scheduled_run', '01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', '01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c:2027-01-01T09:00:00.000Z', '{"scheduleId":"01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c","scheduledFor":"2027-01-01T09:00:00.000Z"}', 1794855820785, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL)
;
insert into jobs (id, bucket, priority, run_at, rev, attempt, max_attempts, state, task, lane, key, payload, created_at, created_by, started_at, node, kept_at, kept, last_error, owner, trace) values (380795075596656640, 0, 0, 1794855823850, 0, 0, 10, 0, 'http', NULL, NULL, '{"url":"http://upstream.invalid/later"}', 1794855820852, 'admin', NULL, NULL, NULL, NULL, NULL, '01a1e5be-5d51-7039-a144-e81582475090', NULL)
;
insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since) values ('workflow', 'clerk', '01a1e5be-5dc9-7905-b318-86e44843cabf', 'clerk', '', 'Stopped', '', '', '', NULL)
;
insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since) values ('source', 'prices', '01a1e5be-5dd1-74b4-8ef0-1c7098248b11', 'prices', '', 'Idle', '', '', '', NULL)
;
insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since) values ('schedule', '01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', '01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', 'poet', '01a1e5be-5d51-7039-a144-e81582475090', 'Idle', '', '', '', NULL)
;
insert into mutations (id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, title, state, can_reconcile, result, error_class, error_message, reconcile_attempts, last_reconcile_at, next_reconcile_at, resolved_by, resolved_at, created_at, updated_at, absent_at, kept_for) values ('01a1e5be-5e14-7923-9a4a-60ecac7fef1a', '01a1e5be-5dc9-7905-b318-86e44843cabf', '01a1e5be-5e12-748a-aab6-eb571d4df676', 1, 'book', 'append', '{"path":"book.txt","line":"o-1"}', '01a1e5be-5e14-7928-a69b-ac072b2346f4', NULL, 'applied', 1, '{"path":"book.txt","offset":0,"size":4}', NULL, NULL, 0, NULL, NULL, 'answer', 1794855820828, 1794855820820, 1794855820828, 1794855880820, NULL)
;
insert into retention_clock (id, at) values (1, 1794855820706)
;
insert into retries (kind, lane, retry_count, crash_count, period_start, next_retry_at, updated_at) values ('workflow', 'clerk', 0, 0, 1794855820745, NULL, 1794855820745)
;
insert into retries (kind, lane, retry_count, crash_count, period_start, next_retry_at, updated_at) values ('source', 'prices', 0, 0, 1794855820751, NULL, 1794855820751)
;
insert into run_logs (run_id, n, phase, at, level, text) values ('01a1e5be-5dd0-7532-90cd-98ca3a220724', 0, 'emitting', 1794855820774, 'info', '0 entered')
;
insert into run_logs (run_id, n, phase, at, level, text) values ('01a1e5be-5e1f-7263-8e85-75949a536855', 0, 'emitting', 1794855820832, 'info', '1 entered')
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at, content) values ('01a1e5be-5dd0-7532-90cd-98ca3a220724', 0, 'preparing', 'peek', '{"topic":"entered","limit":1000}', '[]', NULL, 0, 1794855820772, NULL)
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at, content) values ('01a1e5be-5deb-7b7c-9e09-8f433e18848b', 0, 'preparing', 'peek', '{"topic":"order"}', '[]', NULL, 0, 1794855820780, NULL)
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at, content) values ('01a1e5be-5e12-748a-aab6-eb571d4df676', 0, 'preparing', 'peek', '{"topic":"order"}', '[{"topic":"order","messageId":"o-1","payload":"o-1","status":"pending","attempt":0,"createdAt":"2026-11-16T19:03:40.815Z"}]', NULL, 0, 1794855820819, NULL)
;
insert into run_reads (run_id, n, phase, op, call, answer, error, cut, at, content) values ('01a1e5be-5e1f-7263-8e85-75949a536855', 0, 'preparing', 'peek', '{"topic":"entered","limit":1000}', '[{"topic":"entered","messageId":"entered-o-1","payload":{"id":"o-1","count":1},"status":"pending","attempt":0,"createdAt":"2026-11-16T19:03:40.830Z"}]', NULL, 0, 1794855820832, NULL)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e5be-5dd0-7532-90cd-98ca3a220724', 'workflow', 'clerk', 'count', 'consumer', 'wake', NULL, 'committed', 'committed', 1, 1794855820745, '{"reservations":[{"topic":"entered","ids":[]}],"data":0}', NULL, NULL, NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1e5be-5d50-7dde-9c7e-87fe3f4e2a86', 0, 1, 1794855820752, 1794855820774, 1794855820752, 1794855820774)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e5be-5de0-73d9-9acb-1c94bd2ebd4a', 'source', 'prices', 'prices', 'source', 'schedule', NULL, 'committed', 'committed', 1, 1794855820751, NULL, NULL, NULL, NULL, NULL, NULL, 'fdd3c25f65155e60d19bcb30317bf913c5d11b2a287134bea21103694a65f7a3', '01a1e5be-5d50-7dde-9c7e-87fe3f4e2a86', 0, 1, 1794855820768, 1794855820777, 1794855820768, 1794855820777)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e5be-5deb-7b7c-9e09-8f433e18848b', 'workflow', 'clerk', 'enter', 'consumer', 'wake', NULL, 'committed', 'committed', 1, 1794855820745, '{"reservations":[],"data":{}}', NULL, NULL, NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1e5be-5d50-7dde-9c7e-87fe3f4e2a86', 0, 1, 1794855820779, 1794855820783, 1794855820779, 1794855820783)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e5be-5df8-7bd3-93ff-9873467a619a', 'schedule', '01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', 'poet', 'schedule', 'manual', NULL, 'committed', 'committed', 1, 1794855820790, NULL, NULL, '{"poem": "autumn"}', NULL, NULL, NULL, NULL, '01a1e5be-5d50-7dde-9c7e-87fe3f4e2a86', 0, 1, 1794855820792, 1794855820796, 1794855820792, 1794855820796)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e5be-5e12-748a-aab6-eb571d4df676', 'workflow', 'clerk', 'enter', 'consumer', 'event', NULL, 'committed', 'committed', 1, NULL, '{"reservations":[{"topic":"order","ids":["o-1"]}],"data":{"id":"o-1","count":1}}', '{"status":"applied","result":{"path":"book.txt","offset":0,"size":4}}', '{"count":1}', NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1e5be-5d50-7dde-9c7e-87fe3f4e2a86', 0, 1, 1794855820818, 1794855820830, 1794855820818, 1794855820830)
;
insert into runs (id, kind, lane, handler, handler_type, trigger, retry_of, phase, status, attempt, scheduled_for, prepare_result, mutation_result, output_state, error_code, error_class, error_message, script_version, node, bucket, epoch, created_at, updated_at, started_at, ended_at) values ('01a1e5be-5e1f-7263-8e85-75949a536855', 'workflow', 'clerk', 'count', 'consumer', 'event', NULL, 'committed', 'committed', 1, NULL, '{"reservations":[{"topic":"entered","ids":["entered-o-1"]}],"data":1}', '{"status":"none"}', NULL, NULL, NULL, NULL, 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', '01a1e5be-5d50-7dde-9c7e-87fe3f4e2a86', 0, 1, 1794855820831, 1794855820832, 1794855820831, 1794855820832)
;
insert into source_definitions (id, name, definition, version, number, status, paused_at, deleting_at, revision, created_at, updated_at) values ('01a1e5be-5dd1-74b4-8ef0-1c7098248b11', 'prices', '{"name":"prices","url":"http://stall.invalid/prices","table":"prices","schedule":{"interval":"1d"},"status":"active","execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},"response":{"format":"json","fields":[{"source":"day","target":"day","type":"date"},{"source":"close","target":"close","type":"number"},{"source":"open","target":"open","type":"boolean"},{"source":"at","target":"at","type":"timestamp"},{"source":"extra","target":"extra","type":"json"}],"maxPages":10000,"maxBytes":1073741824},"write":{"mode":"append","key":["day"]}}', 'fdd3c25f65155e60d19bcb30317bf913c5d11b2a287134bea21103694a65f7a3', 1, 'active', NULL, NULL, 0, 1794855820751, 1794855820751)
;
insert into source_runs (run_id, source_id, version, definition, pages, requests, bytes, rows_read, rows_new, rows_changed, rows_same, rejects, note, started_at, updated_at) values ('01a1e5be-5de0-73d9-9acb-1c94bd2ebd4a', '01a1e5be-5dd1-74b4-8ef0-1c7098248b11', 'fdd3c25f65155e60d19bcb30317bf913c5d11b2a287134bea21103694a65f7a3', '{"name":"prices","url":"http://stall.invalid/prices","table":"prices","schedule":{"interval":"1d"},"status":"active","execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},"response":{"format":"json","fields":[{"source":"day","target":"day","type":"date"},{"source":"close","target":"close","type":"number"},{"source":"open","target":"open","type":"boolean"},{"source":"at","target":"at","type":"timestamp"},{"source":"extra","target":"extra","type":"json"}],"maxPages":10000,"maxBytes":1073741824},"write":{"mode":"append","key":["day"]}}', 1, 1, 116, 1, 1, 0, 0, 0, NULL, 1794855820768, 1794855820777)
;
insert into source_state (source_id, last_success_at, last_attempt_at, last_failed, requested_at, mark, position, position_of, rows_total, failures_total, updated_at) values ('01a1e5be-5dd1-74b4-8ef0-1c7098248b11', 1794855820777, 1794855820768, 0, NULL, NULL, NULL, NULL, 1, 0, 1794855820777)
;
insert into source_versions (source_id, number, version, definition, created_at, created_by) values ('01a1e5be-5dd1-74b4-8ef0-1c7098248b11', 1, 'fdd3c25f65155e60d19bcb30317bf913c5d11b2a287134bea21103694a65f7a3', '{"name":"prices","url":"http://stall.invalid/prices","table":"prices","schedule":{"interval":"1d"},"status":"active","execution":{"timeout":300,"maxRetries":5,"retryResetPeriod":"1d"},"response":{"format":"json","fields":[{"source":"day","target":"day","type":"date"},{"source":"close","target":"close","type":"number"},{"source":"open","target":"open","type":"boolean"},{"source":"at","target":"at","type":"timestamp"},{"source":"extra","target":"extra","type":"json"}],"maxPages":10000,"maxBytes":1073741824},"write":{"mode":"append","key":["day"]}}', 1794855820751, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)')
;
insert into storage_days (name, day, at, row_count, bytes) values ('_rejects', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('approval_rules', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('approvals', 20773, 1794855820761, 0, 24576)
;
insert into storage_days (name, day, at, row_count, bytes) values ('audit_log', 20773, 1794855820761, 1, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('backfills', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('billing_accounts', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('buckets', 20773, 1794855820761, 1, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('calendar_versions', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('calendars', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('charge_days', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('charge_receipts', 20773, 1794855820761, 0, 24576)
;
insert into storage_days (name, day, at, row_count, bytes) values ('charge_reservations', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('event_causes', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('event_tombs', 20773, 1794855820761, 0, 4096)
;
insert into storage_days (name, day, at, row_count, bytes) values ('events', 20773, 1794855820761, 0, 24576)
;
insert into storage_days (name, day, at, row_count, bytes) values ('execution_grants', 20773, 1794855820761, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('execution_requests', 20773, 1794855820761, 0, 20480)
;
insert into storage_days (name, day, at, row_count, bytes) values ('graph_questions', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('handler_state', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('hook_deliveries', 20773, 1794855820761, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('hooks', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('idempotency_keys', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('inputs', 20773, 1794855820761, 0, 20480)
;
insert into storage_days (name, day, at, row_count, bytes) values ('job_history', 20773, 1794855820761, 0, 32768)
;
insert into storage_days (name, day, at, row_count, bytes) values ('jobs', 20773, 1794855820761, 5, 28672)
;
insert into storage_days (name, day, at, row_count, bytes) values ('lanes', 20773, 1794855820761, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('mutation_inputs', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('mutations', 20773, 1794855820761, 0, 28672)
;
insert into storage_days (name, day, at, row_count, bytes) values ('nodes', 20773, 1794855820761, 1, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('producer_schedules', 20773, 1794855820761, 0, 20480)
;
insert into storage_days (name, day, at, row_count, bytes) values ('promotions', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('rate_limiter_state', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('read_contents', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('repairs', 20773, 1794855820761, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('retention_clock', 20773, 1794855820761, 1, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('retention_floors', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('retention_leaps', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('retries', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('run_logs', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('run_reads', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('runs', 20773, 1794855820761, 0, 36864)
;
insert into storage_days (name, day, at, row_count, bytes) values ('schedule_runs', 20773, 1794855820761, 0, 36864)
;
insert into storage_days (name, day, at, row_count, bytes) values ('schedule_versions', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('schedules', 20773, 1794855820761, 0, 24576)
;
insert into storage_days (name, day, at, row_count, bytes) values ('schema_migrations', 20773, 1794855820761, 20, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('source_definitions', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('source_runs', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('source_state', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('source_versions', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('storage_days', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('tokens', 20773, 1794855820761, 1, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('topics', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('users', 20773, 1794855820761, 1, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('worker_clock', 20773, 1794855820761, 0, 8192)
;
insert into storage_days (name, day, at, row_count, bytes) values ('workflow_rights', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('workflow_versions', 20773, 1794855820761, 0, 12288)
;
insert into storage_days (name, day, at, row_count, bytes) values ('workflows', 20773, 1794855820761, 0, 16384)
;
insert into storage_days (name, day, at, row_count, bytes) values ('write_probe', 20773, 1794855820761, 0, 8192)
;
insert into users (id, name, role, created_at) values ('01a1e5be-5d51-7039-a144-e81582475090', 'admin', 'admin', 1794855820625)
;
insert into billing_accounts (id, owner_id, name, key_ref, balance, created_at) values ('1d4009cc-53ac-5a1b-b8e6-8c41f7afd5dd', '01a1e5be-5d51-7039-a144-e81582475090', 'default', NULL, NULL, 1794855820785)
;
insert into execution_grants (id, user_id, billing_account_id, scopes, usd_per_day, usd_per_run, runs_per_day, wildcard_consent_at, automatic, expires_at, revoked_at, created_at) values ('01a1e5be-5df2-70cc-bcae-afbade053ea3', '01a1e5be-5d51-7039-a144-e81582475090', '1d4009cc-53ac-5a1b-b8e6-8c41f7afd5dd', '["graph:execute:agents:poet"]', NULL, NULL, NULL, NULL, 1, NULL, NULL, 1794855820785)
;
insert into schedules (id, name, owner_user_id, graph_id, input, cron, timezone, concurrency_policy, enabled, labels, revision, issue, next_run_at, last_run_at, created_at, updated_at, deleted_at, timing, max_runs, begun, ended, execution_grant_id, rules) values ('01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', 'poet', '01a1e5be-5d51-7039-a144-e81582475090', 'agents:poet', '{}', '0 9 1 1 *', 'UTC', 'Queue', 1, '{}', 0, NULL, 1798794000000, 1794855820792, 1794855820785, 1794855820785, NULL, NULL, NULL, 0, 0, '01a1e5be-5df2-70cc-bcae-afbade053ea3', NULL)
;
insert into schedule_runs (id, schedule_id, run_id, scheduled_for, started_at, completed_at, status, disposition, attempt_count, langfuse_trace_id, error_code, error_message, cost, trigger, backfill_id, grant_id, revision, into_slot, created_at, updated_at, doubt, by_person) values ('01a1e5be-5df2-7889-afc2-9b85868216fb', '01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', '', 1798794000000, NULL, NULL, 'pending', NULL, 0, NULL, NULL, NULL, 0, 'schedule', NULL, NULL, 0, NULL, 1794855820785, 1794855820785, NULL, NULL)
;
insert into schedule_runs (id, schedule_id, run_id, scheduled_for, started_at, completed_at, status, disposition, attempt_count, langfuse_trace_id, error_code, error_message, cost, trigger, backfill_id, grant_id, revision, into_slot, created_at, updated_at, doubt, by_person) values ('01a1e5be-5df6-7a33-9c3d-27b1805e339f', '01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', '01a1e5be-5df8-7bd3-93ff-9873467a619a', 1794855820790, 1794855820792, 1794855820796, 'success', 'fired', 1, NULL, NULL, NULL, 0, 'manual', NULL, '01a1e5be-5df2-70cc-bcae-afbade053ea3', 0, NULL, 1794855820790, 1794855820796, NULL, NULL)
;
insert into schedule_versions (schedule_id, revision, graph_id, input, cron, timezone, enabled, created_at, created_by, timing, rules) values ('01a1e5be-5df2-741b-8dc6-1a3ed8f33a2c', 0, 'agents:poet', '{}', '0 9 1 1 *', 'UTC', 1, 1794855820785, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', NULL, NULL)
;
insert into workflow_rights (workflow_id, tool, method, how, subject, created_by, created_at) values ('01a1e5be-5dc9-7905-b318-86e44843cabf', 'book', 'append', 'declared', 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', NULL, 1794855820745)
;
insert into workflows (id, name, lane, desired, version, revision, cleared_run, created_at, updated_at, deployed_at, deleted_at) values ('01a1e5be-5dc9-7905-b318-86e44843cabf', 'clerk', 'clerk', 'paused', 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', 2, NULL, 1794855820745, 1794855820841, 1794855820745, NULL)
;
insert into handler_state (workflow_id, handler, state, wake_at, updated_at) values ('01a1e5be-5dc9-7905-b318-86e44843cabf', 'enter', '{"count":1}', NULL, 1794855820830)
;
insert into handler_state (workflow_id, handler, state, wake_at, updated_at) values ('01a1e5be-5dc9-7905-b318-86e44843cabf', 'count', NULL, NULL, 1794855820774)
;
insert into topics (workflow_id, name, seq, subscribed, created_at, forgotten) values ('01a1e5be-5dc9-7905-b318-86e44843cabf', 'entered', 1, 1, 1794855820745, 0)
;
insert into topics (workflow_id, name, seq, subscribed, created_at, forgotten) values ('01a1e5be-5dc9-7905-b318-86e44843cabf', 'order', 3, 1, 1794855820745, 0)
;
insert into workflow_versions (workflow_id, version, number, filename, source, config, created_at, created_by, confined) values ('01a1e5be-5dc9-7905-b318-86e44843cabf', 'c592d371d0248a4ec89e972a57bd96f6a3c1e295da8e66b47c7be0b72688242a', 1, 'clerk.workflow.ts', 'import { workflow } from "pawl";
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
', '{"name":"clerk","topics":["entered","order"],"consumers":[{"name":"enter","subscribe":["order"],"publishes":["entered"],"hasMutate":true,"hasNext":true},{"name":"count","subscribe":["entered"],"hasMutate":false,"hasNext":true}]}', 1794855820745, 'admin (token 01a1e5be-5d51-7298-8bc4-faf89a0c8350)', 0)
;
