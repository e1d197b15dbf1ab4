package script

import (
	"context"
	"encoding/json"
	"testing"
)

// What the arguments of a large call hold in this process is set aside while the
// host has them, and let go afterwards; small ones wait for nobody.
func TestLargeArgumentsSetAsideWhatTheyHold(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	for size, counted := range map[string]bool{"1000": false, "300000": true} {
		held := int64(-1)
		host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			held = p.arguments.Held()
			return json.RawMessage("null"), nil
		}}
		if _, err := runBody(t, p, `await ctx.tools.x.y({ text: "x".repeat(`+size+`) });`, host, Limits{}); err != nil {
			t.Fatal(err)
		}
		if (held >= 900_000) != counted || !counted && held != 0 {
			t.Errorf("%s characters: %d bytes are set aside", size, held)
		}
		if left := p.arguments.Held(); left != 0 {
			t.Errorf("%s characters: %d bytes are still set aside", size, left)
		}
	}
}
