-- Schedules: graphs that run at their instants, who allowed it, and who pays.
-- Instants are UTC milliseconds, amounts are whole 10^-7 USD.

create table billing_accounts (
  id           text primary key,
  owner_id     text not null references users (id),
  name         text not null,
  key_ref      text,                       -- names the default key, which the execution service resolves; never the key
  balance      bigint,                     -- null: not prepaid
  created_at   bigint not null
);

create index idx_billing_accounts_owner on billing_accounts (owner_id);

create table execution_grants (
  id                   text primary key,
  user_id              text not null references users (id),
  billing_account_id   text not null references billing_accounts (id),
  scopes               text not null,      -- JSON array; only internal/graph/grant knows what they look like
  usd_per_day          bigint,             -- caps; null: none
  usd_per_run          bigint,
  runs_per_day         bigint,
  wildcard_consent_at  bigint,
  automatic            bigint not null default 0, -- 1: made for one schedule, and revoked with it
  expires_at           bigint,
  revoked_at           bigint,
  created_at           bigint not null
);

create index idx_grants_user_id on execution_grants (user_id);
create index idx_grants_billing_account_id on execution_grants (billing_account_id);

create table schedules (
  id                  text primary key,
  name                text not null,
  owner_user_id       text not null references users (id),
  execution_grant_id  text not null references execution_grants (id),
  graph_id            text not null,
  input               text not null,       -- JSON
  cron                text not null,
  timezone            text not null,
  concurrency_policy  text not null,       -- Queue, Forbid, Allow, Replace
  enabled             bigint not null default 1,
  labels              text not null,       -- JSON object
  revision            bigint not null default 0, -- raised by every change of what a slot depends on
  issue               text,                -- why it was paused by itself; null: it was not
  next_run_at         bigint,
  last_run_at         bigint,              -- when the last run started
  created_at          bigint not null,
  updated_at          bigint not null,
  deleted_at          bigint
);

create unique index schedules_name on schedules (owner_user_id, name) where deleted_at is null;
create index idx_schedules_owner on schedules (owner_user_id);
create index idx_schedules_next_run on schedules (next_run_at, id) where enabled = 1;
create index idx_schedules_grant on schedules (execution_grant_id);

-- What a schedule was, by revision, so that a backfill runs what was in force.
create table schedule_versions (
  schedule_id  text not null references schedules (id),
  revision     bigint not null,
  graph_id     text not null,
  input        text not null,
  cron         text not null,
  timezone     text not null,
  enabled      bigint not null,
  created_at   bigint not null,
  created_by   text,
  primary key (schedule_id, revision)
);

-- One row a slot: the authority for whether it ran.
create table schedule_runs (
  id                 text primary key,
  schedule_id        text not null references schedules (id),
  run_id             text not null default '', -- empty until the first start
  scheduled_for      bigint not null,
  started_at         bigint,
  completed_at       bigint,
  status             text not null default 'pending',
  disposition        text,                 -- null until it is closed
  attempt_count      bigint not null default 0,
  langfuse_trace_id  text,
  error_code         text,
  error_message      text,
  cost               bigint not null default 0,
  trigger            text not null,        -- schedule, manual, backfill
  backfill_id        text,
  grant_id           text,                 -- that it began under; null until the first start
  revision           bigint not null,      -- of the schedule when the slot was made
  into_slot          bigint,               -- coalesced: the slot that stands for it
  created_at         bigint not null,
  updated_at         bigint not null
);

create unique index schedule_runs_slot on schedule_runs (schedule_id, scheduled_for);
create index idx_runs_schedule on schedule_runs (schedule_id);
create index idx_runs_scheduled_for on schedule_runs (scheduled_for);
create index idx_runs_run_id on schedule_runs (run_id);
create index schedule_runs_backfill on schedule_runs (backfill_id) where backfill_id is not null;
create index schedule_runs_open on schedule_runs (schedule_id, scheduled_for) where completed_at is null; -- pending or running

-- What the execution service was asked for, by idempotency key.
create table execution_requests (
  idempotency_key  text primary key,
  request_hash     text not null,          -- SHA-256 of graph, input and grant in canonical form
  run_id           text not null,
  attempt          bigint not null default 1,
  graph_id         text not null,
  grant_id         text not null,
  trace_id         text,
  ok               bigint,                 -- null while it runs
  error_code       text,
  error_message    text,
  output           text,
  cost             bigint not null default 0,
  remote           text,                   -- JSON: what the executor needs to find its run again
  interrupt        text,                   -- JSON: what the graph asks a person; null: nothing
  cancel_at        bigint,                 -- somebody asked to stop it
  owner            text,                   -- the node that executes it
  lease_until      bigint,                 -- by the clock of the owner
  created_at       bigint not null,
  updated_at       bigint not null,
  finished_at      bigint
);

create index execution_requests_run on execution_requests (run_id);
create index execution_requests_grant on execution_requests (grant_id, created_at);
create index execution_requests_open on execution_requests (lease_until) where ok is null;

create table charge_receipts (
  id                  text primary key,
  billing_account_id  text not null references billing_accounts (id),
  grant_id            text,
  schedule_id         text,
  run_id              text not null,
  attempt             bigint not null,
  source_system       text not null,
  source_reference    text not null,       -- runId/attempt/unit
  executor            text not null,
  model               text,
  input_tokens        bigint not null default 0,
  output_tokens       bigint not null default 0,
  amount              bigint not null,
  created_at          bigint not null
);

create unique index charge_receipts_reference on charge_receipts (source_system, source_reference);
create index charge_receipts_account on charge_receipts (billing_account_id, created_at, id);
create index charge_receipts_grant on charge_receipts (grant_id, created_at);
create index charge_receipts_run on charge_receipts (run_id);

-- What runs that have not ended may still cost; released when they settle.
create table charge_reservations (
  run_id      text not null,
  attempt     bigint not null,
  grant_id    text not null,
  account_id  text not null,
  amount      bigint not null,
  created_at  bigint not null,
  primary key (run_id, attempt)
);

create index charge_reservations_grant on charge_reservations (grant_id);

create table backfills (
  id            text primary key,
  schedule_id   text not null references schedules (id),
  from_at       bigint not null,
  to_at         bigint not null,
  plan          text not null,             -- JSON: the slots and what each stands for
  hash          text not null,             -- of the plan: what a person confirms
  state         text not null,             -- planned, running, paused, cancelled, done
  per_minute    bigint not null,           -- how many slots begin in a minute
  estimate      bigint,                    -- of the cost; null: nothing is known
  begun         bigint not null default 0, -- slots of the plan that were made due, or had run
  total         bigint not null,
  created_by    text not null,
  created_at    bigint not null,
  confirmed_by  text,
  confirmed_at  bigint,
  updated_at    bigint not null
);

create index backfills_schedule on backfills (schedule_id, created_at);

-- When a worker was last known to be at work: what came due in a gap was
-- missed, what came due before it only waited.
create table worker_clock (
  id        bigint primary key,
  alive_at  bigint not null
);

-- What graphs ask people, and the answers.
create table graph_questions (
  run_id       text primary key,           -- the attempt that waits
  schedule_id  text not null,
  question     text not null,              -- JSON
  answer       text,                       -- JSON; null until somebody answered
  answered_by  text,
  created_at   bigint not null,
  answered_at  bigint
);

create index graph_questions_open on graph_questions (created_at) where answer is null;
