package retention

import (
	"strings"
	"testing"
)

// FuzzParseAge: what is read is written so that it is read the same, and no age is so
// long that sums with it overflow.
func FuzzParseAge(f *testing.F) {
	for _, text := range []string{"90s", "12h", "30d", "2w", "1d12h", "-5d", "--5d", "1e9d", "0.5d", "99999999999999999w", "1µs", "9223372036s", ".d", "1..5d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseAge(text)
		if err != nil {
			return
		}
		if d > 2*longest || d < -2*longest {
			t.Fatalf("%q is %v", text, d)
		}
		if again, err := ParseAge(FormatAge(d)); d != Forever && (err != nil || again != d) {
			t.Fatalf("%q is %v, written %s, read %v, %v", text, d, FormatAge(d), again, err)
		}
	})
}

// FuzzParse: ages that are accepted can be written and are the same again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"runs=30d,events=forever", "runs=30d,runs=2d", "=", "idle-runs=1d", "reads=-1d", "audit=0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ages, err := Parse(strings.Split(text, ","))
		if err != nil {
			return
		}
		again, err := Parse(ages.Texts())
		if err != nil || len(again) != len(ages) {
			t.Fatalf("%q is %v, and then %v, %v", text, ages, again, err)
		}
		for k, d := range ages {
			if again[k] != d {
				t.Fatalf("%q keeps %s for %v, and then %v", text, k, d, again[k])
			}
		}
	})
}
