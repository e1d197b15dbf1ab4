-- A call that is repeated carries the idempotency key of the one it repeats, so
-- a key is no longer one row's alone; it is one row's that has not failed. The
-- constraint of a column cannot be dropped in SQLite, so the table is made anew.

create table mutations_next (
  id                  text primary key,
  workflow_id         text not null,
  run_id              text not null,
  n                   bigint not null,     -- counts the calls of a run; all but one have failed
  tool                text not null,
  method              text not null,
  arguments           text not null,
  idempotency_key     text not null,
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
  updated_at          bigint not null,
  absent_at           bigint,              -- from when on "not there" means that it did not happen
  kept_for            text                 -- hash of the act whose next call carries this key; null: none does
);

insert into mutations_next
select id, workflow_id, run_id, n, tool, method, arguments, idempotency_key, title, state, can_reconcile, result, error_class, error_message,
  reconcile_attempts, last_reconcile_at, next_reconcile_at, resolved_by, resolved_at, created_at, updated_at,
  case when can_reconcile = 1 then created_at + 90000 end, null
from mutations;

drop table mutations;

alter table mutations_next rename to mutations;

create unique index mutations_run on mutations (run_id, n);
create unique index mutations_key on mutations (idempotency_key) where state <> 'failed';
create index mutations_listed on mutations (workflow_id, created_at, id);
create index mutations_open on mutations (workflow_id) where resolved_at is null;
create index mutations_kept on mutations (workflow_id, kept_for) where kept_for is not null;
