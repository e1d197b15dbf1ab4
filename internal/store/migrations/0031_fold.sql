-- Runs that looked and found nothing to do are folded: the first of a stretch stays
-- and stands for those after it.

alter table runs add column folded_at bigint;   -- since when it may stand for others; null: for itself alone
alter table runs add column through_at bigint;  -- when the last of those that it stands for was made
alter table runs add column run_count bigint;   -- how many it stands for, itself among them

-- The last stretches of a lane, and those that are old. What changes while a stretch
-- grows is in no index.
create index runs_folded on runs (kind, lane, created_at, id) where folded_at is not null;
create index runs_folded_age on runs (kind, created_at, id) where folded_at is not null;

-- What is removed all the time is made room of when it is a fiftieth of a table, not a
-- fifth of it.
{{postgres}} alter table runs set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table run_logs set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table run_reads set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table read_contents set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table source_runs set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table events set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table event_causes set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table mutations set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table mutation_inputs set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table schedule_runs set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table execution_requests set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table charge_receipts set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table _rejects set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table audit_log set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table job_history set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table job_results set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table hook_deliveries set (autovacuum_vacuum_scale_factor = 0.02);
{{postgres}} alter table idempotency_keys set (autovacuum_vacuum_scale_factor = 0.02);
