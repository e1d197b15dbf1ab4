package fetch

import (
	"testing"

	"github.com/pawlrun/pawl/internal/source/spec"
)

func TestGreaterKnowsNumbersAndInstants(t *testing.T) {
	for _, pair := range [][2]string{
		{"10", "9"}, {"-1", "-2"}, {"1.5", "1"}, {"1e3", "999"},
		{"12345678901234567891", "12345678901234567890"}, {"100000000000000000000", "99999999999999999999"},
		{"2026-01-02T00:00:00Z", "2026-01-02T01:00:00+02:00"}, {"2026-01-02", "2026-01-01 23:59:59"},
		{"b", "a"}, {"id-9", "id-10"},
	} {
		if !Greater(pair[0], pair[1]) || Greater(pair[1], pair[0]) || Greater(pair[0], pair[0]) {
			t.Errorf("%s is greater than %s, and not the other way round", pair[0], pair[1])
		}
	}
}

func TestSinceGoesBackInTheFormOfTheMark(t *testing.T) {
	tests := []struct{ initial, lookback, mark, want string }{
		{"2024-01-01", "1h", "", "2024-01-01"},
		{"", "", "", ""},
		{"x", "", "abc", "abc"},
		{"", "1h", "2026-01-02T00:30:00Z", "2026-01-01T23:30:00Z"},
		{"", "1h", "2026-01-02T00:30:00.120+02:00", "2026-01-01T23:30:00.120+02:00"},
		{"", "1h", "2026-01-02T00:30:00+0200", "2026-01-01T23:30:00+0200"},
		{"", "90s", "2026-01-02 00:00:30", "2026-01-01 23:59:00"},
		{"", "90s", "2026-01-02 00:01:30 UTC", "2026-01-02 00:00:00 UTC"},
		{"", "1h", "2026-01-02 00:30:00+00", "2026-01-01 23:30:00+00"},
		{"", "1d", "2026-01-02", "2026-01-01"},
		{"", "1h", "1700003600", "1700000000"},
		{"", "1h", "1700003600000", "1700000000000"},
		{"", "1h", "1700003600.5", "1700000000.5"},
		{"", "50", "120", "70"},
	}
	for _, test := range tests {
		got, err := Since(spec.Incremental{Initial: test.initial, Lookback: test.lookback}, test.mark)
		if err != nil || got != test.want {
			t.Errorf("%s less %s is %q, %v; want %q", test.mark, test.lookback, got, err, test.want)
		}
	}
	if got, err := Since(spec.Incremental{Lookback: "1h"}, "abc"); err == nil {
		t.Errorf("there is no way back from text, and yet it is %q", got)
	}
}
