-- What nodes tell each other for those who follow a stream or look at a page. A row
-- lives for seconds, and only while somebody follows what happens on another node.

create table relay_batches (
    id      text primary key,
    said_at bigint not null,
    content text not null
);

create index relay_batches_old on relay_batches (said_at);
