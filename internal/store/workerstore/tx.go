package workerstore

import "github.com/pawlrun/pawl/internal/store"

// Tx is a transaction that reaches the rows of tasks.
type Tx struct{ *store.Tx }

// In opens the room in a transaction.
func In(tx *store.Tx) Tx { return Tx{tx} }
