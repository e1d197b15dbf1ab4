package main

// graphileContenders is Graphile Worker; node/graphile.mjs has its settings.
func graphileContenders() []contender {
	return []contender{
		{
			name: "graphile-local", title: "Graphile Worker, local queue", store: onPostgres,
			about:   "24 jobs at once, local queue of 500, completions in batches, poll every 100 ms; a lane is a queueName, with batches of 5 ms",
			prepare: nodeProgram("graphile-local"),
		},
		{
			name: "graphile-default", title: "Graphile Worker, default", store: onPostgres,
			about:   "24 jobs at once, all else as it comes; a lane is a queueName",
			prepare: nodeProgram("graphile-default"),
		},
	}
}
