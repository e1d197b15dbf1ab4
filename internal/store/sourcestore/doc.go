// Package sourcestore is the room of the store for sources: their definitions
// and where each of them stands.
package sourcestore
