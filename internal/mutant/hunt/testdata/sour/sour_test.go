package sour

import "testing"

func TestDrain(t *testing.T) {
	if Drain(3) != 3 {
		t.Error("not all of it")
	}
}

func TestAlwaysFails(t *testing.T) {
	t.Error("always")
}
