-- Who answers for jobs that applications add without waking anybody (PostgreSQL; see
-- queue/doorkeeper.go). There is one row, and none before the first promise.

create table door_watch (
  id        bigint primary key,            -- 1
  node      text,                          -- whoever answers for them; null: nobody has to
  until_at  bigint not null                -- until then nobody needs to be woken
);
