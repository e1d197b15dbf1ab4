package pawl

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// context 3.19.6: 10^7 credits a USD, rounded up once.
func TestAmountsAreRoundedUpOnce(t *testing.T) {
	for text, want := range map[string]USD{
		"0": 0, "0.0": 0, "0e5": 0, "1": 10_000_000, "0.0000001": 1, "1e-7": 1, "1E-7": 1, "1.5e-3": 15_000, "2e+2": 2_000_000_000,
		"0.00000001": 1, "0.00000011": 2, "0.000000100000": 1, "1e-300": 1, "1e-99999": 1, "12.3456789": 123_456_789, "12.34567891": 123_456_790,
		"922337203685.4775807": 1<<63 - 1, "922337203685.47758061": 1<<63 - 1, "0.0123": 123_000, "000.5": 5_000_000, ".5": 5_000_000, "5.": 50_000_000,
	} {
		if got, err := ParseUSD(text); err != nil || got != want {
			t.Errorf("ParseUSD(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "-1", "+1", "1e", "e5", "abc", "NaN", "Infinity", "0x10", "1_000", "1,5", " 1", "1e99999999999999999999", "1e30", "922337203685.4775808", "922337203685.47758071", strings.Repeat("1", 65)} {
		if got, err := ParseUSD(text); !errors.Is(err, ErrInvalid) {
			t.Errorf("ParseUSD(%q) = %d, %v", text, got, err)
		}
	}
}

func TestAmountsSurviveJSON(t *testing.T) {
	for amount, want := range map[USD]string{0: "0", 1: "0.0000001", 15_000: "0.0015", 10_000_000: "1", -25_000_000: "-2.5", 100_000_000: "10", -1 << 63: "-922337203685.4775808"} {
		raw, err := json.Marshal(amount)
		if err != nil || string(raw) != want {
			t.Errorf("%d is written %s, %v", int64(amount), raw, err)
		}
		if amount == -1<<63 {
			continue
		}
		for _, form := range []string{want, `"` + want + `"`} {
			var back USD
			if err := json.Unmarshal([]byte(form), &back); err != nil || back != amount {
				t.Errorf("%s is read as %d, %v", form, int64(back), err)
			}
		}
	}
	kept := USD(7)
	if err := json.Unmarshal([]byte("null"), &kept); err != nil || kept != 7 {
		t.Error(kept, err)
	}
	for _, wrong := range []string{`true`, `{}`, `"--1"`, `"x"`} {
		if err := json.Unmarshal([]byte(wrong), &kept); err == nil {
			t.Errorf("%s is an amount", wrong)
		}
	}
}
