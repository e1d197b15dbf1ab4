-- What the definition of a lane says about it beside what it runs.

alter table lanes add column keep text not null default '';   -- for how long its things are kept, such as runs=7d,reads=1d; empty: as all others
