-- Indexes and sums with which pages and lists stay quick however much has run.

-- What is held, by workflow: little at any time.
create index events_held on events (workflow_id) where status = 'reserved';

-- Lists of runs begin with the kind; a list of all kinds is put together. Two
-- indexes take the place of two others, so that a run costs no more to write.
drop index runs_created;
drop index runs_status;
create index runs_kind on runs (kind, created_at, id);
create index runs_status on runs (kind, status, created_at, id);
-- The runs of a schedule, whose lanes begin with its id of 36 characters.
create index runs_schedule on runs (substr(lane, 1, 36), created_at, id) where kind = 'schedule';

create index inputs_skipped on inputs (workflow_id, created_at, id) where skipped_at is not null;

create index approvals_workflow on approvals (workflow_id, state, created_at, id);

-- What was charged on each UTC day, to an account and under a grant.
create table charge_days (
  subject   text not null,                 -- the id of the account, or of the grant
  day       bigint not null,               -- days since 1970
  amount    bigint not null,
  receipts  bigint not null,
  primary key (subject, day)
);

insert into charge_days (subject, day, amount, receipts)
  select billing_account_id, created_at / 86400000, cast(sum(amount) as bigint), count(*) from charge_receipts group by 1, 2;
insert into charge_days (subject, day, amount, receipts)
  select grant_id, created_at / 86400000, cast(sum(amount) as bigint), count(*) from charge_receipts where grant_id is not null group by 1, 2;
