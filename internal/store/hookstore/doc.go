// Package hookstore is the room of hooks: their definitions, and what was delivered
// to them.
package hookstore
