package till

import (
	"testing"

	"github.com/pawlrun/pawl/internal/mutant/hunt/testdata/till/drawer"
)

func TestPay(t *testing.T) {
	if !Pay(5, 10) || Booked != 5 || Pay(0, 10) || Pay(11, 10) || !Pay(11, 0) {
		t.Error("not paid as agreed")
	}
}

func TestDrawer(t *testing.T) {
	if drawer.Open(1) || !drawer.Open(7) {
		t.Error("the drawer opens for another key")
	}
}
