-- What scripts may call that no person deployed.

-- The methods of connections that versions deployed by people have called or
-- named, and those that a person granted. A version that auto-fix made may call
-- these and nothing else.
create table workflow_rights (
  workflow_id  text not null,
  tool         text not null,
  method       text not null,
  how          text not null,              -- declared, used, granted; asked: refused, and a person may grant it
  subject      text not null,              -- declared, used: the version; granted, asked: the run that was refused
  created_by   text,                       -- granted: who
  created_at   bigint not null,
  primary key (workflow_id, tool, method)
);

create index workflow_rights_subject on workflow_rights (subject) where how = 'asked';

-- 1: it was made by auto-fix, and no person has deployed it.
alter table workflow_versions add column confined bigint not null default 0;

update workflow_versions set confined = 1 where created_by = 'auto-fix';

insert into workflow_rights (workflow_id, tool, method, how, subject, created_at)
  select m.workflow_id, m.tool, m.method, 'used', min(r.script_version), min(m.created_at)
  from mutations m
  join runs r on r.id = m.run_id
  join workflow_versions v on v.workflow_id = m.workflow_id and v.version = r.script_version
  where v.confined = 0
  group by m.workflow_id, m.tool, m.method;

-- Who decided about a proposal that waited for a person.
alter table repairs add column decided_by text;
