package pawl_test

import (
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// FuzzParseUSD: no amount is negative, none that is more than nothing becomes nothing,
// and what is written is read the same.
func FuzzParseUSD(f *testing.F) {
	for _, text := range []string{"0.0123", "1.5e-3", "1e-99", "922337203685.4775807", "1e12", "-1", "0x1", "1_0", "", ".", "1e", "00", "9e18"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := pawl.ParseUSD(text)
		if err != nil {
			return
		}
		if again, err := pawl.ParseUSD(n.String()); n < 0 || err != nil || again != n {
			t.Fatalf("%q is %d, written %s, read %d, %v", text, n, n, again, err)
		}
	})
}
