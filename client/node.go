package client

// Node is one process of Pawl on the database.
type Node struct {
	ID        string      `json:"id"`
	Name      string      `json:"name" example:"host (process 7)" doc:"Of the machine and the process."`
	Addr      string      `json:"addr" example:"127.0.0.1:7295" doc:"Where it listens."`
	Roles     []string    `json:"roles" nullable:"false" example:"[\"api\",\"worker\"]"`
	Version   string      `json:"version" example:"v1.2.0"`
	Schema    SchemaRange `json:"schema"`
	Shares    int         `json:"shares" doc:"How many shares of the work it has: 64 in all on PostgreSQL, 1 on SQLite."`
	StartedAt Instant     `json:"startedAt"`
	SeenAt    Instant     `json:"seenAt" doc:"When it last gave a sign of life, by its own clock. On SQLite, when it started."`
}

// SchemaRange are the schemas of the database that a program serves.
type SchemaRange struct {
	Min int `json:"min" doc:"Programs whose max is at least this can run beside it. 0: it does not tell."`
	Max int `json:"max" doc:"What it brings a database to. 0: it does not tell."`
}
