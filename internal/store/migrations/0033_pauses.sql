-- What a person said when they paused a lane. Whether it is paused is in the row of its kind.

alter table lanes add column paused_at bigint;                       -- null: it is not, or was before this was noted
alter table lanes add column paused_until bigint;                    -- then it continues by itself; null: not before somebody resumes it
alter table lanes add column paused_by text not null default '';
alter table lanes add column paused_note text not null default '';
