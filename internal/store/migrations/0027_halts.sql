-- One switch that stops all starts on all nodes.

create table halts (
  id         bigint primary key,  -- 1, 2, 3 ...: the last one is in force until it is lifted
  since_at   bigint not null,
  halted_by  text not null,
  note       text not null,
  lifted_at  bigint,              -- null: it is in force
  lifted_by  text
);
