-- Tasks that programs of users serve: what is declared, who works on which job,
-- and what came of it. Their jobs are in the table of jobs, in a bucket that no
-- node owns (-1) and in states that no node takes: 2 waits for a worker, 3 is in
-- the hands of one.

create table worker_tasks (
  name        text primary key,
  definition  text not null,               -- JSON
  owner       text not null,               -- the id of the user who declared it
  turn_owner  text not null default '',    -- with turn_lane: the lane that was served last
  turn_lane   text not null default '',
  created_at  bigint not null,
  updated_at  bigint not null,
  updated_by  text not null
);

create table job_leases (
  job_id       bigint primary key,
  task         text not null,
  owner        text not null,              -- of the job
  lane         text,
  rev          bigint not null,            -- of the job as it was claimed
  token        text not null,
  worker       text not null,
  started_at   bigint not null,
  lease_until  bigint not null
);

create index job_leases_until on job_leases (task, lease_until);
create index job_leases_lane on job_leases (task, owner, lane) where lane is not null;

create table job_results (
  job_id      bigint primary key,
  token       text not null,               -- of the lease that it was completed with: the same again is no other completion
  result      text,                        -- JSON
  keep_until  bigint not null
);

create index job_results_keep on job_results (keep_until);

create index jobs_served on jobs (id) where state >= 2;
create index jobs_served_due on jobs (task, owner, priority, run_at, id) where state = 2;
create index jobs_served_lane on jobs (task, owner, coalesce(lane, ''), priority, run_at, id) where state = 2;

-- How many jobs of a task were handed to workers of late, for tasks that have a rate:
-- by slices of time, each of which counts until all that started in it is older than the
-- period.

create table worker_starts (
  task      text not null,
  owner     text not null,                 -- with lane: whose rate it is; both empty: the task's
  lane      text not null,
  slice     bigint not null,
  starts    bigint not null,
  until_at  bigint not null,
  primary key (task, owner, lane, slice)
);

create index worker_starts_until on worker_starts (until_at);
