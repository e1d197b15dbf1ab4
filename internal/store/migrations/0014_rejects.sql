-- A row that does not fit and is met again is kept once.

alter table _rejects add column hash text;                          -- of the source, the reason and the row
alter table _rejects add column times bigint not null default 1;    -- how often it was met

create index rejects_same on _rejects (hash);
