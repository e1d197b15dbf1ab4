// Package runstore is the room of the store for what lanes of all kinds share:
// runs and their logs, the retry book, and what a lane needs a person for.
package runstore
