-- Partitions of consumers: lanes beneath that of their workflow.

alter table workflows add column partitioned bigint not null default 0;  -- 1: a version of it had partitions
alter table events add column part text;                                 -- the partition that it was sorted into; null: none, empty: it is to be sorted anew

create index events_part on events (workflow_id, topic, part, seq) where status = 'pending' and part is not null;

create table partitions (
  workflow_id   text not null references workflows (id),
  id            text not null,              -- made of the consumer and the name; the end of its lane
  handler       text not null,              -- the consumer
  name          text not null,              -- as the script calls it; empty: of events that have none
  fault         text not null default '',   -- why they have none
  news          bigint not null,            -- grows with every event that is sorted into it
  place         bigint not null,            -- 0: it rests, 1: it waits for a place, 2: it has one
  place_since   bigint not null,
  open          bigint not null,            -- 1: something may be left to do
  next_at       bigint,                     -- when it goes on by itself, while it rests
  wake_at       bigint,
  state         text,                       -- what its handler returned last; null: nothing
  cleared_run   text,                       -- as in workflows
  rejected_run  text,                       -- the run that a person rejected, which stops it until somebody resumes the workflow
  issue         text not null default '',   -- what is the matter with it; empty: nothing
  attention     bigint not null default 0,  -- 1: a person is needed
  issue_since   bigint,
  created_at    bigint not null,
  updated_at    bigint not null,
  primary key (workflow_id, id)
);

create index partitions_waiting on partitions (workflow_id, handler, place_since, id) where place = 1;
create index partitions_working on partitions (workflow_id, handler, id) where place = 2;
create index partitions_open on partitions (workflow_id, id) where open = 1;
create index partitions_issue on partitions (workflow_id, attention, issue_since, id) where issue <> '';
create index partitions_next on partitions (workflow_id, next_at) where next_at is not null;
create index partitions_done on partitions (updated_at) where open = 0;

-- How far the events of a consumer are sorted. Its lock guards the places.
create table partition_sorts (
  workflow_id  text not null references workflows (id),
  handler      text not null,
  expression   text not null,               -- by which they were sorted
  cursors      text not null,               -- JSON: by topic, the number of the last event that was
  news         bigint not null,             -- how many times something was sorted
  primary key (workflow_id, handler)
);

-- The runs of a workflow's partitions, whose lanes are its own, a slash and 24 characters.
create index runs_part on runs (substr(lane, 1, length(lane) - 25), created_at, id) where kind = 'workflow' and substr(lane, (length(lane) - 24), 1) = '/';
