-- What comes in by webhooks: who may send it, and what was sent.

create table hooks (
  name        text primary key,
  definition  text not null,               -- JSON; secrets in it are references, or left out
  version     text not null,               -- SHA-256 of the definition
  owner       text not null,               -- the id of the user in whose name it acts
  created_at  bigint not null,
  updated_at  bigint not null,
  updated_by  text not null
);

create table hook_deliveries (
  id           {{id}},
  hook         text not null,
  delivery_id  text,                       -- the sender's; null of what was refused, so that nobody can take one by a forgery
  received_at  bigint not null,
  outcome      text not null,              -- delivered, pending, filtered, failed, refused
  reason       text,                       -- why it is not delivered
  effect       text,                       -- what it became, in words
  attempts     bigint not null,            -- how often the effect was tried
  effects      bigint not null,            -- and how often it took place: more than once only if people wanted it again
  headers      text not null,              -- JSON; those that are kept
  body         text,                       -- JSON; null of what was refused
  bytes        bigint not null,            -- of the body as it came
  updated_at   bigint not null
);

create unique index hook_deliveries_known on hook_deliveries (hook, delivery_id) where delivery_id is not null;
create index hook_deliveries_hook on hook_deliveries (hook, id);
create index hook_deliveries_outcome on hook_deliveries (hook, outcome, id);
