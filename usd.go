package pawl

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// USD is an amount of money in 10^-7 USD, the unit of all accounts. Whole
// numbers, so that sums do not depend on their order.
type USD int64

// OneUSD is one USD in the unit of USD.
const OneUSD = 10_000_000

// usdDigits is how many decimals of a USD a USD keeps.
const usdDigits = 7

// ParseUSD reads an amount of USD such as 0.0123 or 1.5e-3. What is finer
// than a USD is rounded up, here and nowhere else: no cost becomes nothing.
// It fails with ErrInvalid for what is negative, not a number, or more
// than a USD holds.
func ParseUSD(text string) (USD, error) {
	digits, scale, ok := decimal(text)
	if !ok {
		return 0, badAmount(text, "is not an amount of USD such as 0.0123")
	}
	kept, up := digits, false
	switch drop := scale - usdDigits; {
	case digits == "":
		return 0, nil
	case drop >= len(digits):
		kept, up = "0", true
	case drop > 0:
		kept = digits[:len(digits)-drop]
		up = strings.Trim(digits[len(kept):], "0") != ""
	case -drop > 19: // more digits than the largest USD has
		return 0, badAmount(text, "is more than can be booked")
	default:
		kept = digits + strings.Repeat("0", -drop)
	}
	n, err := strconv.ParseInt(kept, 10, 64)
	if err != nil || up && n == 1<<63-1 {
		return 0, badAmount(text, "is more than can be booked")
	}
	if up {
		n++
	}
	return USD(n), nil
}

// decimal takes a number of JSON apart: its digits without leading zeros, and
// how many of them are decimals (less than 0: zeros are left out).
func decimal(text string) (digits string, scale int, ok bool) {
	const longest = 64 // bytes; no price is longer
	if len(text) > longest {
		return "", 0, false
	}
	mantissa, exponent := strings.ToLower(text), 0
	if at := strings.IndexByte(mantissa, 'e'); at >= 0 {
		n, err := strconv.Atoi(mantissa[at+1:])
		if err != nil {
			return "", 0, false
		}
		mantissa, exponent = mantissa[:at], n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	if all == "" || strings.Trim(all, "0123456789") != "" {
		return "", 0, false
	}
	const furthest = 1000 // an exponent beyond it says the same
	exponent = min(max(exponent, -furthest), furthest)
	return strings.TrimLeft(all, "0"), len(fraction) - exponent, true
}

func badAmount(text, why string) error {
	const shown = 40 // bytes
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "..."
	}
	return &Error{Code: CodeInvalid, Msg: fmt.Sprintf("%q %s", text, why)}
}

// String is the amount in USD, with no more decimals than it needs.
func (m USD) String() string {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n
	}
	text := fmt.Sprintf("%s%d.%0*d", sign, n/OneUSD, usdDigits, n%OneUSD)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON writes the amount as a number of USD.
func (m USD) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON reads a number of USD, or a text that is one. Negative amounts
// are read too, for those are balances.
func (m *USD) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if text == "null" {
		return nil
	}
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(raw, &text); err != nil {
			return fmt.Errorf("read an amount: %w", err)
		}
	}
	positive, negative := strings.CutPrefix(text, "-")
	amount, err := ParseUSD(positive)
	if err != nil {
		return err
	}
	if negative {
		amount = -amount
	}
	*m = amount
	return nil
}
