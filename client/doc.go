// Package client has the types of everything that crosses Pawl's HTTP API:
// what the server answers, the command line prints and the pages show.
//
// The names of fields in JSON are the contract, and the tags doc, enum, example
// and the like are what the server's OpenAPI document says about them. A value
// that can be null on the wire has a type whose zero value is that null: Instant,
// NullString, or a pointer.
//
// The package imports the standard library and the root package of this module
// only.
package client
