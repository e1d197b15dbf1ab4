// Package executionstore is the room of the store for executions of graphs and
// the questions they ask.
package executionstore
