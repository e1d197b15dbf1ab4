-- Programs of several versions on one database: a migration says which is the
-- oldest schema whose programs can go on beside it, and a node says which
-- schemas it serves. Null: it does not tell.

alter table schema_migrations add column oldest bigint;

alter table nodes add column schema_min bigint;
alter table nodes add column schema_max bigint;

alter table jobs add column trace text;                -- the traceparent of whoever asked for it
