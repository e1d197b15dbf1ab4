-- For how long things are kept. Ages count only time that the database has seen
-- pass, so that a clock which jumps makes nothing older.

-- When somebody last looked at the clock; one row.
create table retention_clock (
  id  bigint primary key,
  at  bigint not null
);

-- Looks that were too far apart, or of which the second was before the first.
create table retention_leaps (
  n          bigint primary key,           -- 1, 2, ... in their order
  before_at  bigint not null,
  after_at   bigint not null
);

-- The database was in use until then, whatever the clock says when this is read.
insert into retention_clock (id, at)
  select 1, max(at) from (
    select max(seen_at) as at from nodes
    union all select max(alive_at) from worker_clock
    union all select max(at) from audit_log) as seen
  having max(at) is not null;

-- How far the pruner has come. What is behind it was looked at and kept; it
-- begins again now and then.
create table retention_floors (
  name   text primary key,                 -- what is walked through
  part   text not null,                    -- with at and id: the last row that was looked at
  at     bigint not null,
  id     text not null,
  since  bigint not null                   -- when it last began
);

-- Message ids of events that were removed, as 128 bits of a hash: an event that
-- was consumed once is never taken for a new one.
create table event_tombs (
  a  bigint not null,
  b  bigint not null,
  primary key (a, b)
) {{compact}};

alter table topics add column forgotten bigint not null default 0;  -- events of it that are in event_tombs
alter table inputs add column ended_at bigint;                      -- when its last event was removed; null: they are there, or there were none

-- How large tables were, by day, for what they grow by.
create table storage_days (
  name        text not null,
  day         bigint not null,             -- days since 1970
  at          bigint not null,
  row_count   bigint not null,
  bytes       bigint not null,
  primary key (name, day)
);

-- What runs were answered, once for each workflow: an answer that is the same again
-- costs a reference.
create table read_contents (
  id           text primary key,           -- of the workflow and the content: half of a SHA-256
  workflow_id  text not null,
  at           bigint not null,            -- when it was last the answer
  content      text not null
);

alter table run_reads add column content text;  -- the id of the answer; null: it is in the row, or there is none
create index run_reads_content on run_reads (content) where content is not null;
