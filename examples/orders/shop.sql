-- As an administrator of Pawl's PostgreSQL database, once the server has run on it:
-- a role for the shop that may add jobs, with a table of its own.
create role shop login in role pawl_app;
create schema shop authorization shop;
alter role shop set search_path = shop;
create table shop.orders (id bigint generated always as identity primary key, email text not null, item text not null check (item <> ''));
alter table shop.orders owner to shop;
