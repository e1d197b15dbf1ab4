// Package retention says for how long things are kept: the kinds of rows, their
// ages, what a definition says of its own lane, and how old a row is by the time
// that the database itself has seen pass. It is pure; package prune removes.
package retention
