-- What the definition of a lane expects of it, and how that stands.

alter table lanes add column expect text not null default '';     -- as JSON; empty: nothing
alter table lanes add column expected text not null default '';   -- what was found when it was last judged, as JSON; empty: it was not

-- Those that are judged, and those of which nothing is expected any more.
create index lanes_expect on lanes (kind, lane) where expect <> '' or expected <> '';
