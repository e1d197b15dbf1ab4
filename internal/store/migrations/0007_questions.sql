-- Which question of the execution service it is, so that an answer reaches no
-- other one.

alter table graph_questions add column question_id text;
