// Package userstore is the room of the store for users, their tokens and the
// requests that they must not make twice.
package userstore
