-- A row of a slot that did not run may stand for very many.

alter table schedule_runs add column through_at bigint;  -- the last instant that the row covers; null: it is one slot
alter table schedule_runs add column instants bigint;    -- how many it covers; null: one

-- Which run of a producer or source stood for an instant. Slots tell it of schedules.
create index runs_stands on runs (kind, lane, handler, created_at, id) where scheduled_for is not null and kind <> 'schedule';
