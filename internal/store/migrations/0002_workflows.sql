-- Workflows: what was deployed, what flows through it, what it remembers and
-- what it did to the outside. Instants are UTC milliseconds.

create table workflows (
  id           text primary key,
  name         text not null,
  lane         text not null unique,       -- the name; with #2 and so on for one that was deleted and made again
  desired      text not null,              -- active, paused, archived: what a person wants; runs never change it
  version      text not null,              -- the one that is in force
  revision     bigint not null default 0,  -- raised by every change of this row
  cleared_run  text,                       -- the run of which a person said that what stopped it is mended
  created_at   bigint not null,
  updated_at   bigint not null,
  deployed_at  bigint not null,            -- when the version came into force
  deleted_at   bigint
);

create unique index workflows_name on workflows (name) where deleted_at is null;

-- A version is its content and never changes.
create table workflow_versions (
  workflow_id  text not null references workflows (id),
  version      text not null,              -- SHA-256 of the source
  number       bigint not null,            -- 1, 2, ... in the order of arrival
  filename     text not null,
  source       text not null,
  config       text not null,              -- JSON: what the script declares
  created_at   bigint not null,
  created_by   text,
  primary key (workflow_id, version)
);

create unique index workflow_versions_number on workflow_versions (workflow_id, number);

create table topics (
  workflow_id  text not null references workflows (id),
  name         text not null,
  seq          bigint not null default 0,  -- of the last event; its row lock makes publishers commit in this order
  subscribed   bigint not null default 1,  -- 0: no consumer takes its events, so nobody waits for them
  created_at   bigint not null,
  primary key (workflow_id, name)
);

create table events (
  id           {{id}},
  workflow_id  text not null,
  topic        text not null,
  seq          bigint not null,            -- place in its topic
  payload_seq  bigint not null,            -- the number with which its payload came; seq, unless it was replaced
  message_id   text not null,
  payload      text not null,
  status       text not null,              -- pending, reserved, consumed, skipped
  reserved_by  text,                       -- the run that holds it, or that consumed it
  created_by   text not null,              -- the run that published it, or who else did
  caused_by    text not null,              -- JSON array of input ids
  attempt      bigint not null default 0,  -- how often it was reserved and released
  duplicates   bigint not null default 0,  -- how often it was published again in vain
  created_at   bigint not null,
  updated_at   bigint not null
);

-- The message first: a fresh table has no statistics, and PostgreSQL must not
-- take this index for one that finds what is pending.
create unique index events_message on events (message_id, topic, workflow_id);
create index events_pending on events (workflow_id, topic, seq) where status = 'pending';
create index events_reserved on events (reserved_by) where status = 'reserved';
create index events_listed on events (workflow_id, id);

-- Things of the outside that events come from.
create table inputs (
  id           text primary key,           -- made of the workflow, source, type and external id
  workflow_id  text not null,
  source       text not null,
  type         text not null,
  external_id  text not null,
  title        text not null,
  created_by   text not null,
  created_at   bigint not null,
  skipped_at   bigint,
  skipped_by   text
);

create unique index inputs_external on inputs (workflow_id, source, type, external_id);
create index inputs_listed on inputs (workflow_id, created_at, id);

create table event_causes (
  input_id  text not null,
  event_id  bigint not null,
  primary key (input_id, event_id)
);

create index event_causes_event on event_causes (event_id);

create table handler_state (
  workflow_id  text not null references workflows (id),
  handler      text not null,
  state        text,                       -- null: the handler never returned one
  wake_at      bigint,                     -- consumers only
  updated_at   bigint not null,
  primary key (workflow_id, handler)
);

create index handler_state_wake on handler_state (wake_at) where wake_at is not null;

create table producer_schedules (
  id              text primary key,
  workflow_id     text not null references workflows (id),
  producer_name   text not null,
  schedule_type   text not null,           -- interval, cron
  schedule_value  text not null,
  timezone        text,
  next_run_at     bigint not null,
  last_run_at     bigint,
  requested_at    bigint,                  -- somebody asked for a run now
  created_at      bigint not null,
  updated_at      bigint not null
);

create unique index producer_schedules_name on producer_schedules (workflow_id, producer_name);

create index idx_producer_schedules_workflow on producer_schedules (workflow_id);
create index idx_producer_schedules_next_run on producer_schedules (next_run_at);

-- The ledger of calls that change the outside. A row is durable before its
-- call leaves the host.
create table mutations (
  id                  text primary key,
  workflow_id         text not null,
  run_id              text not null,
  n                   bigint not null,     -- counts the calls of a run; all but one have failed
  tool                text not null,
  method              text not null,
  arguments           text not null,
  idempotency_key     text not null unique,
  title               text,
  state               text not null,
  can_reconcile       bigint not null,     -- 1: the tool can be asked what became of the call
  result              text,
  error_class         text,
  error_message       text,
  reconcile_attempts  bigint not null default 0,
  last_reconcile_at   bigint,
  next_reconcile_at   bigint,
  resolved_by         text,
  resolved_at         bigint,
  created_at          bigint not null,
  updated_at          bigint not null
);

create unique index mutations_run on mutations (run_id, n);
create index mutations_listed on mutations (workflow_id, created_at, id);
create index mutations_open on mutations (workflow_id) where resolved_at is null;

create table mutation_inputs (
  input_id     text not null,
  mutation_id  text not null,
  primary key (input_id, mutation_id)
);

create index mutation_inputs_mutation on mutation_inputs (mutation_id);

-- What handlers logged.
create table run_logs (
  run_id  text not null,
  n       bigint not null,
  phase   text not null,
  at      bigint not null,
  level   text not null,
  text    text not null,
  primary key (run_id, n)
);
