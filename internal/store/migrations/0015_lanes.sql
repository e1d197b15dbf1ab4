-- A row for every lane that is there: who it is, and how it stands while no run
-- of it is active. It is written in the transaction that changes the lane, and
-- with it lanes are found and counted. It takes the place of attention.

create table lanes (
  kind   text not null,
  lane   text not null,                    -- that of its runs; of a schedule the id
  id     text not null,
  name   text not null,
  owner  text not null,                    -- whose it is; empty: everybody's
  state  text not null,                    -- Running, Idle, Needs attention, Stopped
  cause  text not null,                    -- what people were told that they are needed for; empty: nothing
  issue  text not null,
  text   text not null,
  since  bigint,
  primary key (kind, lane)
);

create index lanes_name on lanes (kind, name, lane);
create index lanes_state on lanes (kind, state, name, lane);

insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since)
  select 'workflow', w.lane, w.id, w.name, '',
    case when w.desired <> 'active' then 'Stopped' when a.cause is not null then 'Needs attention'
      else case coalesce((select r.status from runs r where r.kind = 'workflow' and r.lane = w.lane order by r.created_at desc, r.id desc limit 1), '')
        when 'paused:approval' then 'Needs attention' when 'failed:internal' then 'Needs attention'
        when 'paused:transient' then 'Running' when 'paused:reconciliation' then 'Running' when 'crashed' then 'Running' when 'failed:logic' then 'Running'
        else 'Idle' end end,
    coalesce(a.cause, ''), coalesce(a.issue, ''), coalesce(a.text, ''), a.since
  from workflows w left join attention a on a.kind = 'workflow' and a.lane = w.lane where w.deleted_at is null;

insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since)
  select 'source', s.name, s.id, s.name, '',
    case when s.status <> 'active' or s.paused_at is not null or s.deleting_at is not null then 'Stopped' when a.cause is not null then 'Needs attention'
      else case coalesce((select r.status from runs r where r.kind = 'source' and r.lane = s.name order by r.created_at desc, r.id desc limit 1), '')
        when 'failed:internal' then 'Needs attention'
        when 'paused:transient' then 'Running' when 'crashed' then 'Running' when 'failed:logic' then 'Running'
        else 'Idle' end end,
    coalesce(a.cause, ''), coalesce(a.issue, ''), coalesce(a.text, ''), a.since
  from source_definitions s left join attention a on a.kind = 'source' and a.lane = s.name;

insert into lanes (kind, lane, id, name, owner, state, cause, issue, text, since)
  select 'schedule', s.id, s.id, s.name, s.owner_user_id,
    case when exists (select 1 from schedule_runs r where r.schedule_id = s.id and r.completed_at is null and r.status = 'running')
        then case when a.issue = 'approval' then 'Needs attention' else 'Running' end
      when s.enabled = 0 and s.issue is not null then 'Needs attention' when s.enabled = 0 then 'Stopped'
      when a.cause is not null then 'Needs attention' else 'Idle' end,
    coalesce(a.cause, ''), coalesce(a.issue, ''), coalesce(a.text, ''), a.since
  from schedules s left join attention a on a.kind = 'schedule' and a.lane = s.id where s.deleted_at is null;

drop table attention;
