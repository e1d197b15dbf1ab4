-- The spine: who runs (nodes, buckets), what must run (jobs), what ran
-- (job_history, runs), who may ask (users, tokens) and who asked (audit_log).
-- Instants are UTC milliseconds.

create table nodes (
  id          text primary key,
  name        text not null,               -- for people: host and process
  addr        text not null,
  roles       text not null,
  version     text not null,
  started_at  bigint not null,
  beat        bigint not null default 0,   -- raised by every heartbeat; others watch it change
  seen_at     bigint not null,             -- for people; no decision reads it
  share       bigint not null default 0    -- 1: takes buckets, 0: does not
);

create table buckets (
  id     bigint primary key,
  node   text,                             -- owner; null is free
  epoch  bigint not null default 0         -- raised by every change of owner: the fence
);

create table jobs (
  id            {{id}},
  bucket        bigint not null,
  priority      bigint not null default 0, -- 1 before 0 before -1
  run_at        bigint not null,
  rev           bigint not null default 0, -- raised by every change; finishing deletes only the revision that ran
  attempt       bigint not null default 0, -- attempts that have ended
  max_attempts  bigint not null,
  state         bigint not null default 0, -- 0 waiting or running, 1 failed for good
  task          text not null,
  lane          text,
  key           text,
  payload       text not null,
  created_at    bigint not null,
  created_by    text,
  started_at    bigint,                    -- written late, for jobs that run long
  node          text,
  kept_at       bigint,                    -- when an enqueue with mode keep last met this row
  kept          text,                      -- and what it wanted, should the job have been running by then
  last_error    text
) {{hot_options}};

create unique index jobs_key on jobs (key) where key is not null;
create index jobs_due on jobs (bucket, priority, run_at, id) where state = 0;
create index jobs_lane on jobs (lane, priority desc, run_at, id) where lane is not null and state = 0;
create index jobs_failed on jobs (id) where state = 1;
create index jobs_running on jobs (id) where started_at is not null;

create table job_history (
  id           bigint primary key,
  task         text not null,
  lane         text,
  key          text,
  state        text not null,              -- succeeded, failed, cancelled
  run_at       bigint not null,
  started_at   bigint,
  finished_at  bigint not null,
  attempt      bigint not null,
  error        text,
  node         text
);

create index job_history_finished on job_history (finished_at);
-- For lists, newest first. What succeeded is most of it and needs no index.
create index job_history_state on job_history (state, id) where state <> 'succeeded';
create index job_history_task on job_history (task, id);
create index job_history_lane on job_history (lane, id) where lane is not null;
create index job_history_key on job_history (key, id) where key is not null;

create table runs (
  id               text primary key,
  kind             text not null,
  lane             text not null,
  handler          text not null,
  handler_type     text not null,
  trigger          text not null,
  retry_of         text references runs (id),
  phase            text not null,
  status           text not null,
  attempt          bigint not null,
  scheduled_for    bigint,
  prepare_result   text,
  mutation_result  text,
  output_state     text,
  error_code       text,
  error_class      text,
  error_message    text,
  script_version   text,
  node             text,                   -- with bucket and epoch: the fence of the owner that last made it active
  bucket           bigint,
  epoch            bigint,
  created_at       bigint not null,        -- grows along a lane, whatever the clocks of the nodes say
  updated_at       bigint not null,
  started_at       bigint,                 -- null until somebody executes it
  ended_at         bigint                  -- null while active, and in the pauses that the same row leaves again
);

-- At most one run of a lane is active anywhere, whatever the code believes.
create unique index runs_active on runs (kind, lane) where status = 'active';
-- A run has at most one successor, so a chain never forks.
create unique index runs_retry_of on runs (retry_of) where retry_of is not null;
create index runs_lane on runs (kind, lane, created_at, id);
create index runs_created on runs (created_at, id);
create index runs_status on runs (status, created_at, id);
-- What a new owner of a bucket has to recover.
create index runs_bucket on runs (bucket, id) where status = 'active';

-- How often a lane failed or crashed, and when it may try again; a row a lane.
create table retries (
  kind           text not null,
  lane           text not null,
  retry_count    bigint not null,          -- failures in this period; for workflows and schedules: in a row
  crash_count    bigint not null,          -- crashed attempts in a row
  period_start   bigint not null,
  next_retry_at  bigint,                   -- null: not backing off
  updated_at     bigint not null,
  primary key (kind, lane)
);

create table users (
  id          text primary key,
  name        text not null unique,
  role        text not null,               -- viewer, operator, admin
  created_at  bigint not null
);

create table tokens (
  id            text primary key,
  user_id       text not null references users (id),
  name          text not null,
  hash          text not null unique,      -- SHA-256; the token itself is shown once and never stored
  scopes        text not null,             -- JSON array
  created_at    bigint not null,
  expires_at    bigint,
  revoked_at    bigint,
  last_used_at  bigint
);

-- Written to find out whether the database can be written.
create table write_probe (
  id  bigint primary key,
  at  bigint not null
);

create table audit_log (
  id       {{id}},
  at       bigint not null,
  actor    text not null,
  action   text not null,
  subject  text not null,
  detail   text
);

create index audit_log_at on audit_log (at, id);

create table idempotency_keys (
  owner       text not null,
  key         text not null,
  request     text not null,               -- SHA-256 of method, path and body
  status      bigint not null,
  answer      text not null,
  created_at  bigint not null,
  primary key (owner, key)
);

create index idempotency_keys_created on idempotency_keys (created_at);
