// Package sour has a test that fails by itself and one that spins with a fault.
package sour

// Drain empties a barrel.
func Drain(barrel int) (cups int) {
	for barrel > 0 {
		barrel--
		cups++
	}
	return cups
}
