// Package mutationstore is the room of the store for calls that change the
// outside: the mutation ledger, the approvals asked for it, and what came of an
// input.
package mutationstore
