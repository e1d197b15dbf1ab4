-- What an application that calls the functions of the schema pawl may ask for
-- (PostgreSQL; see internal/store/door). Nodes write it when they start.

create table served_tasks (
  name         text primary key,
  max_payload  bigint not null,            -- bytes
  updated_at   bigint not null
);
