-- What stands between a script's intention and the outside: approvals, what
-- runs read, proposals of repairs, and what people were told.

create table approvals (
  id           text primary key,
  workflow_id  text not null,
  run_id       text not null,
  tool         text not null,
  method       text not null,
  arguments    text not null,              -- what will be sent, secrets left out
  hash         text not null,              -- of script version, tool, method and arguments: what is approved
  title        text,                       -- what the script calls it; not to be trusted
  state        text not null,              -- pending, approved, rejected, expired, used
  phase_at     bigint not null,            -- the instant that mutate saw; it sees the same again
  created_at   bigint not null,
  expires_at   bigint not null,
  warned_at    bigint,                     -- when somebody was told that it expires soon
  decided_at   bigint,
  decided_by   text
);

create unique index approvals_open on approvals (run_id) where state = 'pending';
create index approvals_run on approvals (run_id, created_at, id);
create index approvals_listed on approvals (state, created_at, id);

-- Approved once and for all, until revoked.
create table approval_rules (
  id           text primary key,
  workflow_id  text not null,
  tool         text not null,
  method       text not null,
  created_by   text not null,
  created_at   bigint not null,
  revoked_by   text,
  revoked_at   bigint
);

create unique index approval_rules_live on approval_rules (workflow_id, tool, method) where revoked_at is null;

-- What a run read, so that it can be replayed.
create table run_reads (
  run_id     text not null,
  n          bigint not null,
  phase      text not null,
  op         text not null,                -- peek, getByIds, tool
  call       text not null,                -- the arguments, as JSON
  answer     text,                         -- null: it failed, or was too large to keep
  error      text,
  cut        bigint not null default 0,    -- 1: the answer was too large to keep
  at         bigint not null,
  primary key (run_id, n)
);

-- Lanes that need a person, with the cause that people were told of.
create table attention (
  kind   text not null,
  lane   text not null,
  cause  text not null,                    -- run and issue: another one is told again
  issue  text not null,
  text   text not null,
  since  bigint not null,
  primary key (kind, lane)
);

-- Scripts that were proposed after a script failed.
create table repairs (
  id            text primary key,
  workflow_id   text not null,
  run_id        text not null,             -- that failed
  base_version  text not null,             -- the script that failed
  version       text,                      -- the one that came into force; null: none did
  state         text not null,             -- activated, rejected, failed
  reason        text,                      -- why it did not come into force
  script        text,
  explanation   text,
  repairer      text not null,
  created_at    bigint not null
);

create index repairs_listed on repairs (workflow_id, created_at, id);
create index repairs_run on repairs (run_id);
