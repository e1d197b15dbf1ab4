package sqltool

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

const (
	// largestExact is the largest whole number up to which JavaScript holds
	// all of them.
	largestExact = 1<<53 - 1
	// exactDigits is how many decimal digits survive in a JavaScript number.
	exactDigits = 15
)

// null is the JSON of no value.
func null() json.RawMessage { return json.RawMessage("null") }

// wholeNumber is a number if JavaScript can hold it, else a text.
func wholeNumber(n int64) json.RawMessage {
	text := strconv.FormatInt(n, 10)
	if n > largestExact || n < -largestExact {
		return encodeText(text)
	}
	return json.RawMessage(text)
}

// floatNumber is a number; what JSON has no number for is a text.
func floatNumber(f float64) json.RawMessage {
	switch {
	case math.IsNaN(f):
		return encodeText("NaN")
	case math.IsInf(f, 1):
		return encodeText("Infinity")
	case math.IsInf(f, -1):
		return encodeText("-Infinity")
	}
	raw, _ := json.Marshal(f) // it is finite
	return raw
}

// decimalNumber is a number if JavaScript holds all of its digits, else the
// text as it is.
func decimalNumber(text string) json.RawMessage {
	digits := strings.TrimLeft(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, text), "0")
	if len(digits) > exactDigits || !json.Valid([]byte(text)) || text == "null" {
		return encodeText(text)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return encodeText(text)
	}
	return floatNumber(f)
}
