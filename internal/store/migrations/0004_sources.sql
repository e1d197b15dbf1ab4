-- Sources: what is fetched, how far each fetch has come, and what the limits
-- of the outside are. Instants are UTC milliseconds.

create table source_definitions (
  id           text primary key,
  name         text not null unique,
  definition   text not null,              -- JSON; holds no secret
  version      text not null,              -- SHA-256 of the definition
  number       bigint not null,            -- 1, 2, ... in the order of arrival
  status       text not null,              -- what the definition says; only active ones run
  paused_at    bigint,                     -- since when a person wants it to rest
  deleting_at  bigint,                     -- since when it is being deleted
  revision     bigint not null default 0,  -- raised by every change of this row
  created_at   bigint not null,
  updated_at   bigint not null
);

create table source_versions (
  source_id   text not null references source_definitions (id) on delete cascade,
  number      bigint not null,
  version     text not null,
  definition  text not null,
  created_at  bigint not null,
  created_by  text,
  primary key (source_id, number)
);

-- What a source remembers from run to run; a row a source.
create table source_state (
  source_id        text primary key references source_definitions (id) on delete cascade,
  last_success_at  bigint,                 -- when a whole fetch was last committed
  last_attempt_at  bigint,                 -- when a fetch last began
  last_failed      bigint not null default 0, -- 1: the last attempt did not succeed
  requested_at     bigint,                 -- somebody asked for a run now
  mark             text,                   -- JSON: how far the incremental cursor has come
  position         text,                   -- JSON: where a fetch that was cut off goes on; null: at the first page
  position_of      text,                   -- the version that the position belongs to
  rows_total       bigint not null default 0, -- rows written since it was made
  failures_total   bigint not null default 0,
  updated_at       bigint not null
);

-- How far a run of a source has come. It is written with every page.
create table source_runs (
  run_id      text primary key references runs (id),
  source_id   text not null,
  version     text not null,
  definition  text not null,               -- as it was when the run began
  pages       bigint not null default 0,
  requests    bigint not null default 0,
  bytes       bigint not null default 0,
  rows_read   bigint not null default 0,
  rows_new    bigint not null default 0,
  rows_changed bigint not null default 0,
  rows_same   bigint not null default 0,   -- duplicates, which are left as they are
  rejects     bigint not null default 0,
  note        text,                        -- for people: deferred, resumed and the like
  started_at  bigint not null,
  updated_at  bigint not null
);

create index source_runs_source on source_runs (source_id, started_at);

-- Rows of the outside that did not fit, with the reason.
create table _rejects (
  id           {{id}},
  source_name  text not null,
  run_id       text not null,
  page         bigint not null,
  row_number   bigint not null,            -- within its page, from 1
  reason       text not null,
  raw          text not null,              -- the row as it came, cut if it is long
  created_at   bigint not null
);

create index rejects_listed on _rejects (source_name, id);

-- The book of calls: a row for each domain that has a limit or asked for rest.
create table rate_limiter_state (
  domain         text primary key,
  window_start   bigint not null,
  count          bigint not null,          -- calls in this window
  blocked_until  bigint,                   -- the other side asked not to be called before
  remote_limit   bigint,                   -- what the other side last told about its own window
  remote_left    bigint,
  remote_reset   bigint,
  updated_at     bigint not null
);
