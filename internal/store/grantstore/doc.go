// Package grantstore is the room of the store for grants, billing accounts and
// receipts.
package grantstore
