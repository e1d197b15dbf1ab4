// Package relay tells the nodes of one database what happens on the others, for
// those who follow a stream or look at a page there.
//
// A node whose streams or pages are followed says so on a channel, and again every
// few seconds. While one does, the others gather what happens for a moment, keep
// it as one row, and say its id. While nobody follows, a node says nothing and
// the relay costs one atomic read for each thing that happens.
//
// What is told is a convenience: it is lost when a connection breaks, and then
// those who follow are told that it was. On a database of one node, a file, the
// relay does nothing.
//
// Whoever may connect to the database can listen to the channel and send on it.
// They learn the ids of rows that they cannot read, and at most make nodes look for
// rows that are not there.
package relay
