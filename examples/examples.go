// Package examples holds definitions that a newcomer can run and change. The
// demo and the tests use the same files.
package examples

import "embed"

// Letters is the workflow that enters letters into a book, and its
// connections.
//
//go:embed letters
var Letters embed.FS
