-- Whose jobs are whose. Keys and lanes that users choose live in a space of
-- their own for each user: a key is unique, and a lane is one, for its owner
-- only. The owner '' is Pawl itself.

alter table jobs add column owner text not null default '';         -- a user's id; '' is Pawl
alter table job_history add column owner text not null default '';  -- a user's id; '' is Pawl

-- Only users' jobs say who made them. A job in whose place Pawl put one of its
-- own is Pawl's again.
update jobs set owner = coalesce((select u.id from users u where u.name = jobs.created_by), 'unknown') where created_by is not null;

-- What users wanted instead of a job of Pawl's own is dropped.
update jobs set kept_at = null, kept = null where owner = '';

-- The history does not say who made them; only administrators see those.
update job_history set owner = 'unknown' where task in ('http', 'log');

drop index jobs_key;
drop index jobs_lane;
create unique index jobs_key on jobs (key, owner) where key is not null;
create index jobs_lane on jobs (lane, owner, priority desc, run_at, id) where lane is not null and state = 0;
-- For the lists of those who see only their own.
create index jobs_owner on jobs (owner, id) where owner <> '';
create index job_history_owner on job_history (owner, id) where owner <> '';
