package till

import "testing"

func TestPay(t *testing.T) {
	if !Pay(5, 10) || Booked != 5 || Pay(0, 10) || Pay(11, 10) || !Pay(11, 0) {
		t.Error("not paid as agreed")
	}
}
