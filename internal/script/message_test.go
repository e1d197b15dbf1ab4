package script

import (
	"errors"
	"reflect"
	"testing"
)

// All that a worker must know of a phase arrives, with the arguments behind it; and what
// ends too early is no header.
func TestHeaderOfAPhaseArrivesWhole(t *testing.T) {
	sent := runHeader{EndsAtCall: true}
	fill(reflect.ValueOf(&sent).Elem(), new(int64))
	sent.Limits.Wall, sent.Limits.Bytes = 0, 0 // which the server holds
	sent.Seed |= 1 << 63
	payload := sent.before([]byte(`[1,"é"]`))
	got, args, err := readRunHeader(payload)
	if err != nil || got != sent || string(args) != `[1,"é"]` {
		t.Errorf("got %+v, %s, %v; sent %+v", got, args, err, sent)
	}
	whole := len(payload) - len(args)
	for n := range whole {
		if _, _, err := readRunHeader(payload[:n]); !errors.Is(err, errProtocol) {
			t.Fatalf("%d of %d bytes were read as a header: %v", n, whole, err)
		}
	}
}

// fill gives each field a value of its own.
func fill(v reflect.Value, n *int64) {
	for i := range v.NumField() {
		f := v.Field(i)
		*n += 1 << 30
		switch {
		case f.Kind() == reflect.Struct:
			fill(f, n)
		case f.Kind() == reflect.String:
			f.SetString(string(rune('a' + i)))
		case f.CanInt():
			f.SetInt(-*n)
		case f.CanUint():
			f.SetUint(uint64(*n))
		}
	}
}
