package client

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzEvents: a stream is taken apart in the same way however it arrives, and no event
// has a line break in its type or id.
func FuzzEvents(f *testing.F) {
	for _, text := range []string{"event: job\nid: 1\ndata: {}\n\n", ": hello\n\ndata: a\ndata: b\n\n", "data\n\n", "data: a", "id: \x00\ndata:\n\n", "event:\r\ndata: x\r\n\r\n", "\n\n\n", "data: a\rdata: b\r\r"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, pieces := newEventReader(bytes.NewReader(text)), newEventReader(iotest.OneByteReader(bytes.NewReader(text)))
		for n := 0; ; n++ {
			a, errA := whole.next()
			b, errB := pieces.next()
			if (errA == nil) != (errB == nil) || a.ID != b.ID || a.Type != b.Type || !bytes.Equal(a.Data, b.Data) {
				t.Fatalf("event %d is %+v, %v or %+v, %v", n, a, errA, b, errB)
			}
			if errA != nil {
				return
			}
			if strings.ContainsAny(a.ID+a.Type, "\n") || n > len(text) {
				t.Fatalf("event %d: %+v", n, a)
			}
		}
	})
}

// FuzzInstant: an instant that is read is written so that it is read the same.
func FuzzInstant(f *testing.F) {
	for _, text := range []string{`"2030-01-31T09:00:00Z"`, `null`, `""`, `"2030-01-31T09:00:00.123456789+02:00"`, `"0000-01-01T00:00:00Z"`, `1`, `"9999-12-31T23:59:60Z"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var at, again Instant
		if json.Unmarshal(text, &at) != nil {
			return
		}
		raw, err := json.Marshal(at)
		if err != nil { // a year of more than four digits
			return
		}
		if err := json.Unmarshal(raw, &again); err != nil || at.Sub(again.Time).Abs() > 1e6 {
			t.Fatalf("%s is written %s, and is %v, %v", text, raw, again, err)
		}
	})
}
