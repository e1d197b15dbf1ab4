-- What limits when producers and sources run, and which instants they stood for.

alter table producer_schedules add column timing text;  -- JSON: what the script says besides interval, cron and timezone; null: nothing
alter table producer_schedules add column plan text;    -- JSON: the calendars and the anchor that it was planned with; null: none

alter table source_state add column plan text;          -- as above
alter table source_state add column stood_for bigint;   -- the latest instant of the schedule that a run began for
