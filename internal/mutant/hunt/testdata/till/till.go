// Package till is what the tests hunt in.
package till

var Booked, Told int

func Pay(amount, limit int) bool {
	if amount <= 0 || (amount > limit && limit > 0) {
		return false
	}
	Booked += amount
	Told++
	switch {
	case amount == 13:
		Told = 0
	}
	return !(Booked < 0)
}
