// Package server builds every part of Pawl from its configuration, starts them
// in order, and stops them in order. It is the only place that wires.
//
// Start: database (opened and migrated), identity of the node, admin token,
// queue, HTTP. Stop: HTTP answers no more, running work is drained, buckets are
// given back, the database is closed. A second start understands everything a
// first one left, however that ended.
package server
