// Package examples holds definitions that a newcomer can run and change. The
// demo and the tests use the same files.
package examples

import "embed"

// Letters is the workflow that enters letters into a book, and its
// connections.
//
//go:embed letters
var Letters embed.FS

// Prices is the source that fetches prices into a table, what is known about
// its server, and a file that stands in for that server.
//
//go:embed prices
var Prices embed.FS

// Poet is the schedule that asks for a poem every morning, its executor, and a
// program that writes the poems.
//
//go:embed poet
var Poet embed.FS

// Orders are the workflows that place orders, small ones at once and large ones
// when a person has approved them, and their connections.
//
//go:embed orders/*.ts orders/*.yaml
var Orders embed.FS
