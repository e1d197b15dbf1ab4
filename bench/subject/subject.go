package subject

import "context"

// Config is all that a queue is told before its first job.
type Config struct {
	// DSN is a PostgreSQL URL of an empty database, or the path of an SQLite
	// file that does not exist yet.
	DSN string `json:"dsn"`
	// Lanes is how many lanes the jobs will use, none for 0. A queue that has
	// no lanes of its own prepares what it puts in their place.
	Lanes int `json:"lanes"`
	// PerLane is how many jobs of a lane may run at once; 0 is one.
	PerLane int `json:"perLane,omitempty"`
}

// Subject is one queue in one configuration.
//
// A job is handled when handle returned; it is finished when the store says
// so durably, which for a queue that finishes in batches is later.
type Subject interface {
	// Setup connects and creates the schema.
	Setup(ctx context.Context, cfg Config) error
	// EnqueueOne returns once the job is committed and synced.
	EnqueueOne(ctx context.Context, job Job) error
	// EnqueueBulk uses the fastest durable way the queue documents; all the
	// jobs are committed and synced when it returns.
	EnqueueBulk(ctx context.Context, jobs []Job) error
	// Start begins to work on jobs and returns. Every job is one call of
	// handle with the job's number, on any goroutine.
	Start(ctx context.Context, handle func(seq int)) error
	// Finished reports whether every due job is finished in the store. It is
	// asked only after all of them were handled, and must be cheap.
	Finished(ctx context.Context) (bool, error)
	// Stop ends the work and waits for it; Start may follow.
	Stop(ctx context.Context) error
	// Cleanup closes what Setup opened.
	Cleanup(ctx context.Context) error
}
