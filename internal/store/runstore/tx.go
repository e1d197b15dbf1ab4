package runstore

import "github.com/pawlrun/pawl/internal/store"

// Tx is a transaction that reaches the rows of runs.
type Tx struct{ *store.Tx }

// In opens the room in a transaction.
func In(tx *store.Tx) Tx { return Tx{tx} }

// DB is a store that reaches the rows of runs, each call in a transaction of its
// own.
type DB struct{ *store.DB }

// On opens the room of a store.
func On(db *store.DB) DB { return DB{db} }
