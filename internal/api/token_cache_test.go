package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

func TestTokenCacheHoldsForASecond(t *testing.T) {
	var c tokenCache
	now := time.Now()
	_, found, era := c.get("h", now)
	if found {
		t.Error("found before it was put")
	}
	c.put("h", store.Token{ID: "1"}, era, now)
	for after, want := range map[time.Duration]bool{0: true, 999 * time.Millisecond: true, time.Second: false} {
		if token, found, _ := c.get("h", now.Add(after)); found != want || token.ID != "1" {
			t.Errorf("after %v: %v", after, found)
		}
	}
	if _, found, _ := c.get("other", now); found {
		t.Error("found another")
	}
}

// What was read before a revocation must not be kept after it.
func TestTokenCacheForgetsWhatIsBeingRead(t *testing.T) {
	var c tokenCache
	now := time.Now()
	_, _, era := c.get("h", now)
	c.forget()
	c.put("h", store.Token{}, era, now)
	if _, found, _ := c.get("h", now); found {
		t.Error("kept what was read before")
	}
	_, _, era = c.get("h", now)
	c.put("h", store.Token{}, era, now)
	c.forget()
	if _, found, _ := c.get("h", now); found {
		t.Error("did not forget")
	}
}

func TestTokenCacheIsBounded(t *testing.T) {
	var c tokenCache
	for i := range maxCached + 10 {
		c.put(fmt.Sprint(i), store.Token{}, 0, time.Now())
	}
	if len(c.entries) > maxCached {
		t.Errorf("%d entries", len(c.entries))
	}
}
