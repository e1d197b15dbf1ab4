// Package drawer has no tests of its own.
package drawer

// Opened is how often the drawer was opened.
var Opened int

// Open opens the drawer for its key.
func Open(key int) (open bool) {
	open = key == 7
	switch open {
	case true:
		Opened++
	}
	return open
}
