-- Moves from a SQLite file to PostgreSQL: a row in the file that was left, and
-- one with the same id in the database that took over.

create table promotions (
  id           text primary key,
  side         text not null,              -- from: this database was left; to: it took over
  state        text not null,              -- copied: the file still counts; done
  other        text not null,              -- the other database, for people; without credentials
  created_at   bigint not null,
  finished_at  bigint
);
