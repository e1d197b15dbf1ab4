// Package prunestore is the room of the store for what is too old to be kept. It
// alone removes rows of other rooms, in small batches, and it alone knows what
// refers to what: a run that an event, a call, a receipt or a person who is asked
// refers to is in use. It also has what the pruner remembers: what it has seen of
// time, how far it has come, and the hashes of message ids.
package prunestore
