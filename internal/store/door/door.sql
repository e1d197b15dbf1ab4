-- The door for applications: functions and a view in the schema pawl, for the
-- role pawl_app. They write what the same request over HTTP writes, inside the
-- transaction of whoever calls them.
--
-- Those four run with the rights of Pawl's own user and a fixed search path, and
-- so does all that they call: what begins with _, which nobody else may. What is
-- not PostgreSQL's own is named with its schema; {{home}} has Pawl's tables.
--
-- This text is run at every start that finds another one in place, so it only
-- creates or replaces. Unlike the rest of the house it reads the clock:
-- the application has none that can be trusted.

-- What another text left of its own functions goes: one whose result changes could
-- not be replaced.
do $$
declare
  old regprocedure;
begin
  for old in select p.oid::regprocedure from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'pawl' and p.proname like '\_%' loop
    execute 'drop function ' || old;
  end loop;
end $$;

create sequence if not exists pawl._ids as bigint;

-- _refuse ends the call with a fault of the caller's.
create or replace function pawl._refuse(p_place text, p_message text, p_hint text) returns void
language plpgsql immutable as $$
begin
  raise exception using errcode = 'invalid_parameter_value', message = p_place || p_message, hint = p_hint;
end $$;

-- _known is what jobs are looked up by, in one row, because each table that a call reads is
-- set up anew in every transaction: how many bytes the payload of a task may have (below zero:
-- programs of users serve it), and the ids of users. Triggers keep it. What is not in it
-- is looked for in the tables.
create table if not exists pawl._known (id int primary key check (id = 1), tasks jsonb not null, users jsonb not null);
insert into pawl._known values (1, '{}', '{}') on conflict do nothing;

-- learn has no _ before its name: triggers need it, and another text drops what has.
create or replace function pawl.learn() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- The row first: what is read after that includes what others learnt before.
  perform from pawl._known k where k.id = 1 for update;
  update pawl._known k set tasks = t.tasks, users = u.users
    from (select coalesce(jsonb_object_agg(w.name, -w.most), '{}') || coalesce((select jsonb_object_agg(s.name, s.max_payload) from {{home}}.served_tasks s), '{}') as tasks
        from (select w.name, (select max(s.max_payload) from {{home}}.served_tasks s) as most from {{home}}.worker_tasks w) w where w.most is not null) t,
      (select case when count(*) <= 1000 then coalesce(jsonb_object_agg(u.name, u.id), '{}') else '{}' end as users from {{home}}.users u) u
    where k.id = 1 and (k.tasks, k.users) is distinct from (t.tasks, u.users);
  return null;
end $$;

drop trigger if exists pawl_door on {{home}}.served_tasks;
create trigger pawl_door after insert or delete or update of name, max_payload on {{home}}.served_tasks execute function pawl.learn();
drop trigger if exists pawl_door on {{home}}.worker_tasks;
create trigger pawl_door after insert or delete or update of name on {{home}}.worker_tasks execute function pawl.learn();
drop trigger if exists pawl_door on {{home}}.users;
create trigger pawl_door after insert or delete or update of id, name on {{home}}.users execute function pawl.learn();
update {{home}}.users set name = name where false;

-- _owner is the id of the user in whose name the session acts: the one that is
-- called like the database role that logged in, else the first one there is.
create or replace function pawl._owner() returns text
language plpgsql stable as $$
declare
  found_id text := {{owner}};
begin
  if found_id is null then
    raise exception using errcode = 'object_not_in_prerequisite_state',
      message = 'Pawl has no user yet', hint = 'Start the server on this database once.';
  end if;
  return found_id;
end $$;

-- _known_task tells whether a task can be asked for: how many bytes its payload
-- may have, null if it cannot, and whether programs of users serve it. What users
-- can enqueue is decided here.
create or replace function pawl._known_task(p_task text, out most bigint, out served boolean)
language plpgsql stable as $$
begin
  select t.max_payload, false into most, served from {{home}}.served_tasks t where t.name = p_task;
  if not found and exists (select 1 from {{home}}.worker_tasks t where t.name = p_task) then
    most := (select max(t.max_payload) from {{home}}.served_tasks t);
    served := true;
  end if;
end $$;

create or replace function pawl._unknown_task(p_place text, p_task text) returns void
language plpgsql stable as $$
declare
  names text := (select string_agg(t.name, ', ' order by t.name) from (select name from {{home}}.served_tasks union select name from {{home}}.worker_tasks) t);
begin
  perform pawl._refuse(p_place, format('task %s is not a task of this server', coalesce('"' || left(p_task, 256) || '"', 'null')),
    coalesce('Tasks: ' || names || '.', 'No node has told yet which tasks there are: start the server on this database once.'));
end $$;

-- _bucket is store.BucketOf: the lane decides, else the key, else chance. It is
-- the FNV-1a hash of the UTF-8 bytes modulo 64, of which only the last six bits
-- are ever needed: 5 and 19 are those of the offset and the prime.
create or replace function pawl._bucket(p_lane text, p_key text) returns bigint
language plpgsql volatile as $$
declare
  name bytea := convert_to(coalesce(nullif(p_lane, ''), p_key), 'UTF8');
  h int := 5;
begin
  if name is null or length(name) = 0 then
    return floor(random() * 64)::bigint;
  end if;
  for i in 0 .. length(name) - 1 loop
    h := ((h # get_byte(name, i)) * 19) & 63;
  end loop;
  return h;
end $$;

-- _new_id makes the number of a job as store.idSource does: 41 bits of
-- milliseconds, 10 of the process (1023 is this door) and 12 of a counter.
create or replace function pawl._new_id() returns bigint
language plpgsql volatile as $$
begin
  return (floor(extract(epoch from clock_timestamp()) * 1000)::bigint - {{epoch}} << 22) | (1023 << 12) | (nextval('pawl._ids') & 4095);
end $$;

-- _id is the number in the id of a job, or null if it is no job's.
create or replace function pawl._id(p_id uuid) returns bigint
language plpgsql immutable as $$
declare
  hex text := replace(p_id::text, '-', '');
  n bigint;
begin
  n := (('x' || substr(hex, 1, 12))::bit(48)::bigint - {{epoch}} << 22)
    | (('x' || substr(hex, 14, 3))::bit(12)::bigint << 10) | ((('x' || substr(hex, 17, 4))::bit(16)::bigint >> 4) & 1023);
  if n > 0 and {{uuid:n}} = p_id then
    return n;
  end if;
  return null;
end $$;

create or replace function pawl._uuid(p_id bigint) returns uuid
language sql immutable as $$ select {{uuid:p_id}} $$;

-- _name_fault is what is wrong with a lane or a key, or null: the rule of the
-- API for names.
create or replace function pawl._name_fault(p_name text) returns text
language plpgsql immutable as $$
begin
  return case
    when length(p_name) not between 1 and 256 then 'must have 1 to 256 characters'
    when left(p_name, 1) = ' ' or right(p_name, 1) = ' ' then 'must not begin or end with a space'
    when p_name collate "C" ~ '^[ -~]*$' then null
    when p_name collate "C" ~ '{{hidden}}' then 'must have printable characters only'
  end;
end $$;

-- _check refuses what the API refuses, and tells whether programs of users serve
-- the task.
create or replace function pawl._check(p_place text, p_task text, p_payload text, p_run_at timestamptz, p_lane text, p_key text, p_key_mode text, p_priority bigint, p_max_attempts bigint)
returns boolean language plpgsql volatile as $$
declare
  most bigint;
  served boolean;
begin
  select k.most, k.served into most, served from pawl._known_task(p_task) k;
  if most is null then
    perform pawl._unknown_task(p_place, p_task);
  end if;
  if octet_length(p_payload) > most then
    raise exception using errcode = 'program_limit_exceeded',
      message = format('%spayload has %s bytes, more than the %s that are allowed', p_place, octet_length(p_payload), most),
      hint = 'Keep the data elsewhere and send where it is.';
  end if;
  if p_run_at < '2000-01-01 00:00:00+00' then
    perform pawl._refuse(p_place, 'run_at is before the year 2000', 'Send the year in four digits; leave it out to mean now.');
  elsif p_run_at > clock_timestamp() + interval '{{ahead}} hours' then
    perform pawl._refuse(p_place, 'run_at is more than ten years ahead', 'Check the year.');
  end if;
  if p_lane is not null and pawl._name_fault(p_lane) is not null then
    perform pawl._refuse(p_place, 'lane ' || pawl._name_fault(p_lane), 'Leave it out to have none.');
  end if;
  if p_key is not null and pawl._name_fault(p_key) is not null then
    perform pawl._refuse(p_place, 'key ' || pawl._name_fault(p_key), 'Leave it out to have none.');
  end if;
  if p_key_mode not in ('replace', 'preserve_run_at', 'keep') then
    perform pawl._refuse(p_place, format('key_mode %s is not known', to_json(left(p_key_mode, 256))), 'Use replace, preserve_run_at or keep.');
  elsif p_key_mode <> 'replace' and p_key is null then
    perform pawl._refuse(p_place, 'key_mode needs a key', 'Send a key, or leave key_mode out.');
  end if;
  if p_priority not between -1 and 1 then
    perform pawl._refuse(p_place, 'priority must be -1, 0 or 1', '1 comes first and -1 last; leave it out to mean 0.');
  end if;
  if p_max_attempts not between 1 and 1000 then
    perform pawl._refuse(p_place, 'max_attempts must be 1 to 1000', 'Leave it out to mean 10.');
  end if;
  return served;
end $$;

-- _hint is what is said of a job that was written, so that its owner looks for
-- it: see queue/hint.go. Those of one transaction are as few as possible, because
-- equal ones are said once: of what is due by now the beginning of the
-- transaction is said, of what is due later the minute.
create or replace function pawl._hint(p_task text, p_bucket bigint, p_priority bigint, p_run_at bigint) returns text
language sql volatile as $$
  select case when p_bucket < 0 then 't ' || p_task || E'\n' else 'd ' || p_bucket || ' ' || p_priority || ' ' || case
    when p_run_at <= floor(extract(epoch from transaction_timestamp()) * 1000)::bigint then p_run_at
    when p_run_at <= extract(epoch from clock_timestamp()) * 1000 then floor(extract(epoch from transaction_timestamp()) * 1000)::bigint
    else greatest(floor(extract(epoch from transaction_timestamp()) * 1000)::bigint, p_run_at - p_run_at % 60000) end || E'\n' end
$$;

create or replace function pawl._notice(p_action text, p_subject text, p_detail jsonb) returns void
language plpgsql volatile as $$
begin
  insert into {{home}}.audit_log (id, at, actor, action, subject, detail)
    values (pawl._new_id(), floor(extract(epoch from clock_timestamp()) * 1000)::bigint, 'database role ' || session_user, p_action, p_subject, p_detail::text);
end $$;

-- _put writes a job as Tx.Enqueue does, and returns the row. A job that failed
-- for good is revived by any mode: it counts as absent.
create or replace function pawl._put(p_owner text, p_task text, p_payload text, p_run_at bigint, p_lane text, p_key text, p_key_mode text, p_priority bigint, p_max_attempts bigint, p_maker text, p_served boolean)
returns {{home}}.jobs language plpgsql volatile as $$
#variable_conflict use_variable
declare
  made bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  at bigint := coalesce(p_run_at, made);
  bucket bigint := case when p_served then -1 else pawl._bucket(p_lane, p_key) end;
  state bigint := case when p_served then 2 else 0 end;
  got {{home}}.jobs;
begin
  if p_key is null then
    insert into {{home}}.jobs (id, bucket, priority, run_at, max_attempts, task, owner, lane, payload, created_at, created_by, state)
      values (pawl._new_id(), bucket, p_priority, at, p_max_attempts, p_task, p_owner, p_lane, p_payload, made, p_maker, state)
      returning * into got;
    return got;
  end if;
  if p_key_mode = 'keep' then
    insert into {{home}}.jobs (id, bucket, priority, run_at, max_attempts, task, owner, lane, key, payload, created_at, created_by, state)
      values (pawl._new_id(), bucket, p_priority, at, p_max_attempts, p_task, p_owner, p_lane, p_key, p_payload, made, p_maker, state)
      on conflict (key, owner) where key is not null do nothing returning * into got;
    if found then
      return got;
    end if;
    update {{home}}.jobs j set kept_at = made, kept = format('{"task":%s,"payload":%s,"runAt":%s,"maxAttempts":%s%s}', to_json(p_task), p_payload, at, p_max_attempts, case when p_served then ',"served":true' else '' end)
      where j.key = p_key and j.owner = p_owner and j.state <> 1 returning * into got;
    if found then
      return got;
    end if;
  end if;
  insert into {{home}}.jobs as j (id, bucket, priority, run_at, max_attempts, task, owner, lane, key, payload, created_at, created_by, state)
    values (pawl._new_id(), bucket, p_priority, at, p_max_attempts, p_task, p_owner, p_lane, p_key, p_payload, made, p_maker, state)
    on conflict (key, owner) where key is not null do update set
      bucket = excluded.bucket, priority = excluded.priority, max_attempts = excluded.max_attempts, task = excluded.task,
      lane = excluded.lane, payload = excluded.payload, created_by = excluded.created_by, trace = excluded.trace,
      rev = j.rev + 1, attempt = 0, state = excluded.state, started_at = null, node = null, kept_at = null, kept = null, last_error = null,
      run_at = case
        when p_key_mode = 'preserve_run_at' and j.state <> 1 then j.run_at
        when p_key_mode = 'earliest' and j.state <> 1 and j.run_at < excluded.run_at then j.run_at
        else excluded.run_at end
    returning * into got;
  return got;
end $$;

-- _watched tells whether a node looks for new jobs by itself, so that nobody has to be
-- woken: see queue/doorkeeper.go. It is asked after the transaction has its number and
-- the jobs have their ids. A transaction that sees the past could see a promise
-- that ended.
create or replace function pawl._watched() returns boolean
language plpgsql volatile as $$
begin
  return {{watch}} > extract(epoch from clock_timestamp()) * 1000;
end $$;

-- A job without a key or a date, which most are, is written by few and small statements: each
-- subquery of a larger one is set up again in every transaction, which takes longer than to run it.
create or replace function pawl.add_job(task text, payload jsonb default '{}', run_at timestamptz default null, lane text default null,
  key text default null, key_mode text default 'replace', priority int default 0, max_attempts int default 10) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  body text := coalesce(add_job.payload, '{}')::text;
  mode text := coalesce(add_job.key_mode, 'replace');
  rank bigint := coalesce(add_job.priority, 0);
  tries bigint := coalesce(add_job.max_attempts, 10);
  transaction xid8 := pg_current_xact_id();
  made bigint;
  number bigint;
  part bigint;
  known record;
  served boolean;
  got {{home}}.jobs;
begin
  if add_job.key is null and add_job.run_at is null and mode = 'replace' and rank between -1 and 1 and tries between 1 and 1000 and (add_job.lane is null or pawl._name_fault(add_job.lane) is null) then
    made := floor(date_part('epoch', clock_timestamp()) * 1000)::bigint;
    number := (made - {{epoch}} << 22) | (1023 << 12) | (nextval('pawl._ids') & 4095);
    select (k.tasks ->> add_job.task)::bigint as most, coalesce(k.users ->> session_user::text, k.users ->> 'admin') as who, w.until_at into known
      from pawl._known k left join {{home}}.door_watch w on w.id = k.id;
    if octet_length(body) <= abs(known.most) and known.who is not null then
      part := case when known.most < 0 then -1 when add_job.lane is null then floor(random() * 64)::bigint else pawl._bucket(add_job.lane, null) end;
      insert into {{home}}.jobs (id, bucket, priority, run_at, max_attempts, task, owner, lane, payload, created_at, created_by, state)
        values (number, part, rank, made, tries, add_job.task, known.who, add_job.lane, body, made, session_user, case when part < 0 then 2 else 0 end);
      insert into {{home}}.audit_log (id, at, actor, action, subject, detail)
        values ((made - {{epoch}} << 22) | (1023 << 12) | (nextval('pawl._ids') & 4095), made, 'database role ' || session_user, 'job.create', 'job:' || number,
          jsonb_build_object('task', add_job.task, 'key', null, 'lane', add_job.lane)::text);
      if known.until_at is null or known.until_at <= made or current_setting('transaction_isolation') <> 'read committed' then
        perform pg_notify('pawl_jobs', pawl._hint(add_job.task, part, rank, made) || E'q\n');
      end if;
      return pawl._uuid(number);
    end if;
  end if;
  served := pawl._check('', add_job.task, body, add_job.run_at, add_job.lane, add_job.key, mode, rank, tries);
  got := pawl._put(pawl._owner(), add_job.task, body, floor(extract(epoch from add_job.run_at) * 1000)::bigint, add_job.lane, add_job.key, mode, rank, tries, session_user, served);
  perform pawl._notice('job.create', 'job:' || got.id, jsonb_build_object('task', got.task, 'key', add_job.key, 'lane', add_job.lane));
  perform pg_notify('pawl_jobs', pawl._hint(got.task, got.bucket, got.priority, got.run_at));
  return pawl._uuid(got.id);
end $$;

-- _read reads one of add_jobs; its fields are called as the arguments of add_job,
-- or as those of the API.
create or replace function pawl._read(p_place text, p_job jsonb, out task text, out payload text, out run_at timestamptz, out lane text, out key text, out key_mode text, out priority bigint, out max_attempts bigint)
language plpgsql volatile as $$
declare
  name text;
  value jsonb;
  wanted text;
begin
  payload := '{}';
  key_mode := 'replace';
  priority := 0;
  max_attempts := 10;
  if jsonb_typeof(p_job) is distinct from 'object' then
    perform pawl._refuse(p_place, 'is not an object', 'Send an array of objects such as {"task": "log", "payload": {"message": "hello"}}.');
  end if;
  for name, value in select * from jsonb_each(p_job) loop
    wanted := case when name in ('task', 'lane', 'key', 'key_mode', 'keyMode', 'run_at', 'runAt') then 'string' when name in ('priority', 'max_attempts', 'maxAttempts') then 'number' end;
    if wanted is null and name <> 'payload' then
      perform pawl._refuse(p_place, format('has no field %s', to_json(left(name, 256))), 'Fields: task, payload, run_at, lane, key, key_mode, priority, max_attempts.');
    elsif wanted = 'number' and (jsonb_typeof(value) <> 'number' or value::text !~ '^-?[0-9]{1,9}$') and value <> 'null' then
      perform pawl._refuse(p_place, name || ' must be a whole number', 'Send it without quotation marks.');
    elsif wanted = 'string' and jsonb_typeof(value) not in ('string', 'null') then
      perform pawl._refuse(p_place, name || ' must be a string', 'Send it in quotation marks.');
    end if;
    continue when value = 'null' and name <> 'payload';
    case name
      when 'task' then task := value #>> '{}';
      when 'payload' then payload := value::text;
      when 'lane' then lane := value #>> '{}';
      when 'key' then key := value #>> '{}';
      when 'key_mode', 'keyMode' then key_mode := value #>> '{}';
      when 'priority' then priority := value::text::bigint;
      when 'max_attempts', 'maxAttempts' then max_attempts := value::text::bigint;
      else begin
        run_at := (value #>> '{}')::timestamptz;
      exception when others then
        perform pawl._refuse(p_place, name || ' must be a date and time', 'Use RFC 3339 with an offset, such as 2030-01-31T09:00:00Z.');
      end;
    end case;
  end loop;
end $$;

-- _plain reads what one of add_jobs has beside its task and payload, if that is
-- surely what _read and _check accept, and no key: a row with the id 0. They decide on the rest,
-- for which it is null.
create or replace function pawl._plain(p_rest jsonb) returns {{home}}.jobs
language plpgsql volatile as $$
declare
  rank text := p_rest ->> 'priority';
  tries text := coalesce(p_rest ->> 'max_attempts', p_rest ->> 'maxAttempts');
  at text := coalesce(p_rest ->> 'run_at', p_rest ->> 'runAt');
  due timestamptz;
  j {{home}}.jobs;
begin
  j.lane := p_rest ->> 'lane';
  if p_rest - '{lane,priority,run_at,runAt,max_attempts,maxAttempts}'::text[] <> '{}' or p_rest ?& '{run_at,runAt}' or p_rest ?& '{max_attempts,maxAttempts}' then
    return null;
  end if;
  if j.lane is not null and (jsonb_typeof(p_rest -> 'lane') <> 'string' or pawl._name_fault(j.lane) is not null) then
    return null;
  end if;
  if rank is not null and (jsonb_typeof(p_rest -> 'priority') <> 'number' or rank not in ('-1', '0', '1')) then
    return null;
  end if;
  if tries is not null and (jsonb_typeof(coalesce(p_rest -> 'max_attempts', p_rest -> 'maxAttempts')) <> 'number' or tries !~ '^([1-9][0-9]{0,2}|1000)$') then
    return null;
  end if;
  if at is not null then
    if jsonb_typeof(coalesce(p_rest -> 'run_at', p_rest -> 'runAt')) <> 'string' or at !~ '^20[0-9]{2}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$' then
      return null;
    end if;
    due := at::timestamptz;
    if due < '2000-01-01 00:00:00+00' or due > clock_timestamp() + interval '{{ahead}} hours' then
      return null;
    end if;
    j.run_at := floor(extract(epoch from due) * 1000)::bigint;
  end if;
  j.id := 0;
  j.priority := rank::bigint;
  j.max_attempts := tries::bigint;
  return j;
end $$;

-- If all are plain, one statement writes them, with ids that grow in their order. All hints
-- are one.
create or replace function pawl.add_jobs(jobs jsonb) returns setof uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  transaction xid8 := pg_current_xact_id();
  made bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  who text;
  known jsonb;
  n int := 0;
  ids bigint[];
  hints text[];
  due boolean;
  served boolean;
  item jsonb;
  r record;
  got {{home}}.jobs;
begin
  if jsonb_typeof(add_jobs.jobs) is distinct from 'array' then
    perform pawl._refuse('', 'jobs must be an array', 'Send an array of objects such as {"task": "log", "payload": {"message": "hello"}}.');
  elsif jsonb_array_length(add_jobs.jobs) > {{most}} then
    raise exception using errcode = 'program_limit_exceeded', message = format('there are %s jobs, more than the {{most}} that are allowed', jsonb_array_length(add_jobs.jobs)),
      hint = 'Call it several times in the transaction.';
  end if;
  select k.tasks, coalesce(k.users ->> session_user::text, k.users ->> 'admin') into known, who from pawl._known k;
  if who is null then
    who := pawl._owner();
  end if;
  with given as materialized (
    select e.place::int as place, case when jsonb_typeof(e.job -> 'task') = 'string' then e.job ->> 'task' end as task, coalesce((e.job -> 'payload')::text, '{}') as payload,
      case when jsonb_typeof(e.job) = 'object' then e.job - '{task,payload}'::text[] end as rest,
      (floor(date_part('epoch', clock_timestamp()) * 1000)::bigint - {{epoch}} << 22) | (1023 << 12) | (nextval('pawl._ids') & 4095) as id
    from jsonb_array_elements(add_jobs.jobs) with ordinality e (job, place)
  ), item as materialized (
    select g.place, g.id, g.task, g.payload, (known ->> g.task)::bigint as most, case when g.rest <> '{}' then pawl._plain(g.rest) end as more, g.rest = '{}' as bare from given g
  ), total as materialized (
    select array_agg(i.id order by i.id) as ids, coalesce(bool_and((i.more).run_at <= made), true) as due from item i
      having bool_and(coalesce((i.bare or (i.more).id = 0) and octet_length(i.payload) <= abs(i.most), false))
  ), put as (
    insert into {{home}}.jobs (id, bucket, priority, run_at, max_attempts, task, owner, lane, payload, created_at, created_by, state)
      select t.ids[i.place], case when i.most < 0 then -1 when (i.more).lane is null then floor(random() * 64)::bigint else pawl._bucket((i.more).lane, null) end, coalesce((i.more).priority, 0), coalesce((i.more).run_at, made), coalesce((i.more).max_attempts, 10),
        i.task, who, (i.more).lane, i.payload, made, session_user, case when i.most < 0 then 2 else 0 end
      from total t cross join item i
  )
  select t.ids, t.due into ids, due from total t;
  if ids is null then
    for item in select * from jsonb_array_elements(add_jobs.jobs) loop
      select * into r from pawl._read('jobs[' || n || ']: ', item);
      served := pawl._check('jobs[' || n || ']: ', r.task, r.payload, r.run_at, r.lane, r.key, r.key_mode, r.priority, r.max_attempts);
      got := pawl._put(who, r.task, r.payload, floor(extract(epoch from r.run_at) * 1000)::bigint, r.lane, r.key, r.key_mode, r.priority, r.max_attempts, session_user, served);
      ids := ids || got.id;
      hints := hints || pawl._hint(got.task, got.bucket, got.priority, got.run_at);
      n := n + 1;
    end loop;
  end if;
  if ids is not null then
    perform pawl._notice('job.create', 'job:' || ids[1], jsonb_build_object('jobs', cardinality(ids)));
    if not (hints is null and due and pawl._watched()) then
      if hints is null then
        hints := array(select pawl._hint(h.task, h.bucket, h.priority, h.run_at)
          from (select distinct case when j.bucket < 0 then j.task end as task, j.bucket, j.priority, j.run_at from {{home}}.jobs j where j.id = any(ids)) h);
      end if;
      -- A notification has less than 8000 bytes.
      perform pg_notify('pawl_jobs', string_agg(h.line, '' order by h.line) || E'q\n')
        from (select line, row_number() over () / 200 as part from (select distinct l collate "C" as line from unnest(hints) l) d) h group by h.part;
    end if;
  end if;
  return query select pawl._uuid(u) from unnest(ids) with ordinality as t (u, place) order by place;
end $$;

create or replace function pawl.cancel_job(id uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  number bigint := pawl._id(cancel_job.id);
  who text := pawl._owner();
  gone {{home}}.jobs;
begin
  delete from {{home}}.jobs j where j.id = number and j.owner = who returning * into gone;
  if not found then
    return false;
  end if;
  insert into {{home}}.job_history as h (id, task, owner, lane, key, state, run_at, started_at, finished_at, attempt, error, node)
    values (gone.id, gone.task, gone.owner, gone.lane, gone.key, 'cancelled', gone.run_at, gone.started_at,
      floor(extract(epoch from clock_timestamp()) * 1000)::bigint, gone.attempt, gone.last_error, gone.node)
    on conflict on constraint job_history_pkey do update set state = excluded.state, started_at = excluded.started_at,
      finished_at = excluded.finished_at, attempt = excluded.attempt, error = excluded.error, node = excluded.node;
  perform pawl._notice('job.cancel', 'job:' || gone.id, jsonb_build_object('task', gone.task, 'key', gone.key, 'lane', gone.lane));
  perform pg_notify('pawl_jobs', format(E'c %s\n', gone.id));
  return true;
end $$;

create or replace function pawl._id_fault(p_name text, p_value text) returns void
language plpgsql immutable as $$
begin
  if p_value is null or octet_length(p_value) not between 1 and 512 then
    perform pawl._refuse('', p_name || ' must have 1 to 512 bytes', 'Send what tells it apart from all others.');
  end if;
end $$;

-- _json is how Go writes a text in JSON.
create or replace function pawl._json(p_text text) returns text
language sql immutable as $$
  select replace(replace(replace(replace(replace(to_json(p_text)::text, '<', '\u003c'), '>', '\u003e'), '&', '\u0026'), U&'\2028', '\u2028'), U&'\2029', '\u2029')
$$;

-- _input registers what an event comes from, as workflow.newInput does, and
-- returns its id.
create or replace function pawl._input(p_workflow text, p_input jsonb, p_now bigint) returns text
language plpgsql volatile as $$
declare
  source text := p_input ->> 'source';
  kind text := p_input ->> 'type';
  external text := p_input ->> 'id';
  title text := coalesce(p_input ->> 'title', '');
  name text;
  id text;
begin
  if jsonb_typeof(p_input) <> 'object' then
    perform pawl._refuse('', 'input is not an object', 'It has the fields source, type, id and title.');
  end if;
  for name in select f from jsonb_object_keys(p_input) f loop
    if name not in ('source', 'type', 'id', 'title') then
      perform pawl._refuse('', format('input has no field %s', to_json(left(name, 256))), 'It has the fields source, type, id and title.');
    elsif jsonb_typeof(p_input -> name) not in ('string', 'null') then
      perform pawl._refuse('', format('input.%s must be a string', name), 'Send it in quotation marks.');
    end if;
  end loop;
  perform pawl._id_fault('input.source', source), pawl._id_fault('input.type', kind), pawl._id_fault('input.id', external);
  title := regexp_replace(title collate "C", '[\u000a\u0009\u000d\u2028\u2029]', ' ', 'g');
  title := regexp_replace(title collate "C", '[\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]', '', 'g');
  title := btrim(left(btrim(title), 200));
  id := 'in_' || left(encode(sha256(convert_to((select string_agg(octet_length(convert_to(part, 'UTF8')) || ':' || part, '' order by place)
    from unnest(array[p_workflow, source, kind, external]) with ordinality p (part, place)), 'UTF8')), 'hex'), 32);
  insert into {{home}}.inputs (id, workflow_id, source, type, external_id, title, created_by, created_at)
    values (id, p_workflow, source, kind, external, coalesce(nullif(title, ''), source || ' ' || kind || ' ' || external), session_user, p_now)
    on conflict do nothing;
  return id;
end $$;

-- publish does what Service.PublishExternal does, and writes the same rows.
create or replace function pawl.publish(workflow text, topic text, message_id text, payload jsonb, input jsonb default null) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  flow {{home}}.workflows;
  place {{home}}.topics;
  body text := coalesce(publish.payload, 'null')::text;
  most bigint := (select max(t.max_payload) from {{home}}.served_tasks t);
  now_ms bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  new_id bigint := pawl._new_id();
  cause text;
  status text := 'pending';
  tomb bytea;
  got record;
  job {{home}}.jobs;
begin
  perform pawl._id_fault('message_id', publish.message_id);
  if octet_length(body) > most then
    raise exception using errcode = 'program_limit_exceeded',
      message = format('payload has %s bytes, more than the %s that are allowed', octet_length(body), most), hint = 'Keep the data elsewhere and send where it is.';
  end if;
  select * into flow from {{home}}.workflows w where w.name = publish.workflow and w.deleted_at is null;
  if not found then
    raise exception using errcode = 'no_data_found', message = format('there is no workflow %s', coalesce(to_json(left(publish.workflow, 256))::text, 'null')), hint = 'Deploy it first.';
  end if;
  if not exists (select 1 from {{home}}.topics t where t.workflow_id = flow.id and t.name = publish.topic and t.subscribed = 1) then
    raise exception using errcode = 'no_data_found',
      message = format('workflow %s has no topic %s that a consumer subscribes to', to_json(flow.name), coalesce(to_json(left(publish.topic, 256))::text, 'null')),
      hint = coalesce((select 'It has ' || string_agg(to_json(t.name)::text, ', ' order by t.name) || '.' from {{home}}.topics t where t.workflow_id = flow.id and t.subscribed = 1), 'It takes no events.');
  end if;
  if publish.input is not null and publish.input <> 'null' then
    cause := pawl._input(flow.id, publish.input, now_ms);
  end if;
  update {{home}}.topics t set seq = t.seq + 1 where t.workflow_id = flow.id and t.name = publish.topic returning * into place;
  if place.forgotten > 0 then
    tomb := sha256(convert_to('[' || pawl._json(flow.id) || ',' || pawl._json(publish.topic) || ',' || pawl._json(publish.message_id) || ']', 'UTF8'));
    if exists (select 1 from {{home}}.event_tombs d where d.a = ('x' || encode(substr(tomb, 1, 8), 'hex'))::bit(64)::bigint and d.b = ('x' || encode(substr(tomb, 9, 8), 'hex'))::bit(64)::bigint) then
      update {{home}}.topics t set seq = t.seq - 1 where t.workflow_id = flow.id and t.name = publish.topic;
      return false;
    end if;
  end if;
  if exists (select 1 from {{home}}.inputs i where i.id = cause and i.skipped_at is not null) then
    status := 'skipped';
  end if;
  insert into {{home}}.events as e (id, workflow_id, topic, seq, payload_seq, message_id, payload, status, created_by, caused_by, created_at, updated_at)
    values (new_id, flow.id, publish.topic, place.seq, place.seq, publish.message_id, body, status, session_user, case when cause is null then '[]' else '["' || cause || '"]' end, now_ms, now_ms)
    on conflict (workflow_id, topic, message_id) do update set
      payload_seq = case when e.status = 'pending' and e.payload <> excluded.payload then excluded.payload_seq else e.payload_seq end,
      updated_at = case when e.status = 'pending' and e.payload <> excluded.payload then excluded.updated_at else e.updated_at end,
      duplicates = e.duplicates + case when e.status = 'pending' and e.payload <> excluded.payload then 0 else 1 end,
      payload = case when e.status = 'pending' then excluded.payload else e.payload end,
      caused_by = case when e.status = 'pending' then excluded.caused_by else e.caused_by end,
      part = case when e.status = 'pending' and e.payload <> excluded.payload and e.part is not null then '' else e.part end
    returning e.id, e.status, e.payload_seq into got;
  if got.id <> new_id and got.status = 'pending' then
    delete from {{home}}.event_causes c where c.event_id = got.id;
  end if;
  if cause is not null and (got.id = new_id or got.status = 'pending') then
    insert into {{home}}.event_causes (input_id, event_id) values (cause, got.id) on conflict do nothing;
  end if;
  if got.id <> new_id and got.payload_seq <> place.seq then
    update {{home}}.topics t set seq = t.seq - 1 where t.workflow_id = flow.id and t.name = publish.topic;
    return false;
  end if;
  perform pawl._notice('event.publish', 'workflow:' || flow.name, jsonb_build_object('topic', publish.topic, 'messageId', publish.message_id));
  job := pawl._put('', 'pawl.workflow', json_build_object('workflow', flow.id)::text, null, 'workflow:' || flow.lane, 'workflow:' || flow.lane, 'earliest', 0, 0, null, false);
  perform pg_notify('pawl_jobs', pawl._hint(job.task, job.bucket, job.priority, job.run_at));
  return got.id = new_id;
end $$;

-- What the view shows is decided by a barrier of its own for each part: the one
-- of a view that puts parts together does not hold for them, because PostgreSQL
-- takes such a view apart before it looks at barriers.
create or replace view pawl._live with (security_barrier) as
  select {{uuid:j.id}} as id, j.task,
    case when j.state = 1 then 'failed' when j.started_at is not null or j.state = 3 then 'running'
      when j.run_at > extract(epoch from statement_timestamp()) * 1000 then 'scheduled' else 'pending' end as state,
    j.attempt::int as attempts, null::jsonb as result, j.last_error as error,
    case when j.state = 1 then (select to_timestamp(h.finished_at / 1000.0) from {{home}}.job_history h where h.id = j.id) end as finished_at
  from {{home}}.jobs j where j.owner <> '' and j.owner = {{owner}};

-- A result with the character \u0000, half of a surrogate pair or a number of very many digits is JSON
-- that jsonb cannot hold: it is shown as its text, for a row that cannot be read would keep all others
-- from being read.
create or replace view pawl._past with (security_barrier) as
  select {{uuid:h.id}} as id, h.task, h.state, h.attempt::int as attempts,
    (select case
        when regexp_replace(replace(r.result, '\\', ''), '\\u[dD][89abAB]..\\u[dD][c-fC-F]..', '', 'g') ~ '\\u(0000|[dD][89a-fA-F])'
          or regexp_replace(r.result, '"([^"\\]|\\.)*"', '', 'g') ~ '[eE][+-]?[0-9]{4}|[0-9]{255}' then to_jsonb(r.result)
        else r.result::jsonb end
      from {{home}}.job_results r where r.job_id = h.id and r.keep_until > extract(epoch from statement_timestamp()) * 1000) as result,
    h.error, to_timestamp(h.finished_at / 1000.0) as finished_at
  from {{home}}.job_history h where h.owner <> '' and h.owner = {{owner}} and (select 1 from {{home}}.jobs j where j.id = h.id) is null;

create or replace view pawl.job_state with (security_barrier) as
  select l.id, l.task, l.state, l.attempts, l.result, l.error, l.finished_at from pawl._live l
  union all
  select p.id, p.task, p.state, p.attempts, p.result, p.error, p.finished_at from pawl._past p;

create index if not exists jobs_uuid on {{home}}.jobs (({{uuid:id}})) where owner <> '';
create index if not exists job_history_uuid on {{home}}.job_history (({{uuid:id}})) where owner <> '';

revoke all on all functions in schema pawl from public;
