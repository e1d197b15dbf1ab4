-- breaking
-- Schedules that run something without a grant, and what a definition says about
-- doing it again. Whether a slot ran may be known to nobody.

drop index idx_schedules_grant;
alter table schedules add column grant_id text references execution_grants (id);
update schedules set grant_id = execution_grant_id;
alter table schedules drop column execution_grant_id;
alter table schedules rename column grant_id to execution_grant_id; -- null: what it runs needs none
create index idx_schedules_grant on schedules (execution_grant_id);

alter table schedules add column rules text;         -- JSON: idempotent, missed, retry; null: as usual
alter table schedule_versions add column rules text;

alter table schedule_runs add column doubt bigint;   -- 1: nobody knows whether it ran, and no person has said
alter table schedule_runs add column by_person bigint;  -- 1: a person skipped it, so that no change of the schedule brings it back
create index schedule_runs_doubt on schedule_runs (schedule_id, scheduled_for) where doubt is not null;
