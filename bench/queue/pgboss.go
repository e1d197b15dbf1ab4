package main

// pgbossContenders is pg-boss; node/pgboss.mjs has its settings. By default
// pg-boss takes one job every two seconds, which is not worth measuring.
func pgbossContenders() []contender {
	return []contender{{
		name: "pgboss-batch", title: "pg-boss, batches", store: onPostgres,
		about:   "2 workers with batches of 1,000, NOTIFY, poll every 500 ms; a lane is a singletonKey in a key_strict_fifo queue",
		prepare: nodeProgram("pgboss-batch"),
	}}
}
