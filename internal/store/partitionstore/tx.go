// Package partitionstore is the room of the store for the partitions of workflows: how
// each stands, who has a place, and how far events are sorted.
package partitionstore

import "github.com/pawlrun/pawl/internal/store"

// Tx is a transaction that reaches the rows of partitions.
type Tx struct{ *store.Tx }

// In opens the room in a transaction.
func In(tx *store.Tx) Tx { return Tx{tx} }
