-- A node's id belongs to one living process at a time: each draws a name of its
-- own, and a heartbeat counts only under the name that joined last.

alter table nodes add column incarnation text not null default '';
