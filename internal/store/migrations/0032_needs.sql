-- What lanes need before they start: the sources that must be fresh, and who waits
-- for them.

create table needs (
  source        text not null,             -- its name
  kind          text not null,             -- schedule or workflow
  lane          text not null,             -- as in lanes
  waits_since   bigint,                    -- it waits for the source since then; null: it does not
  waited_since  bigint,                    -- the same of the last wait that a fetch ended
  waited_until  bigint,                    -- when that ended
  primary key (source, kind, lane)
);

create index needs_lane on needs (kind, lane);
create index needs_waiting on needs (source, kind, lane) where waits_since is not null;

alter table schedule_runs add column waits_since bigint;   -- a slot that waits for a source does so since then
