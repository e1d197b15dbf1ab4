// Package client talks to a Pawl server: its Client enqueues jobs, deploys
// workflows, reads lanes and runs, and follows the stream of events. Errors are
// those of package pawl: errors.Is(err, pawl.ErrNotFound) and the like work.
//
// It has the types of everything that crosses the HTTP API, which are the same
// for the server, the command line and the pages. What has no method of its own
// is asked for with Get, List, Post and the like.
//
// The names of fields in JSON are the contract, and the tags doc, enum, example
// and the like are what the server's OpenAPI document says about them. A value
// that can be null on the wire has a type whose zero value is that null: Instant,
// NullString, or a pointer.
//
// The package imports the standard library and the root package of this module
// only.
package client
