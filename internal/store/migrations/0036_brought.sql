-- What a run brought, for those who expect that it brings something; and the traces of
-- events, for the runs that take them.

alter table runs add column brought bigint;           -- how many events a producer published; null: nobody counted
alter table schedule_runs add column brought bigint;  -- how many rows the execution told of; null: it told of none
alter table events add column trace text;              -- the traceparent of whoever published it; null: it has none
