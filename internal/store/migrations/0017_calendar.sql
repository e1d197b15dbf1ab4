-- When schedules run besides one expression, and days on which they do not.

alter table schedules add column timing text;             -- JSON: what limits it, or takes the place of the expression; null: nothing
alter table schedules add column max_runs bigint;         -- how many of its own slots may begin; null: any number
alter table schedules add column begun bigint not null default 0;  -- own slots that have begun
alter table schedules add column ended bigint not null default 0;  -- 1: it has no further instant
alter table schedule_versions add column timing text;

-- Days that schedules leave out together. Versions stay: a schedule names the one
-- that it was planned with.
create table calendars (
  name        text primary key,
  revision    bigint not null,
  days        text not null,               -- JSON array of dates and ranges, as they were written
  created_at  bigint not null,
  updated_at  bigint not null,
  deleted_at  bigint
);

create table calendar_versions (
  name        text not null,
  revision    bigint not null,
  days        text not null,
  created_at  bigint not null,
  created_by  text,
  primary key (name, revision)
);
