package access

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestKeeperHoldsForASecond(t *testing.T) {
	var c Keeper
	now := time.Now()
	_, found, era := c.get("h", now)
	if found {
		t.Error("found before it was put")
	}
	c.put("h", userstore.Token{ID: "1"}, era, now)
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
func TestKeeperForgetsWhatIsBeingRead(t *testing.T) {
	var c Keeper
	now := time.Now()
	_, _, era := c.get("h", now)
	c.Forget()
	c.put("h", userstore.Token{}, era, now)
	if _, found, _ := c.get("h", now); found {
		t.Error("kept what was read before")
	}
	_, _, era = c.get("h", now)
	c.put("h", userstore.Token{}, era, now)
	c.Forget()
	if _, found, _ := c.get("h", now); found {
		t.Error("did not forget")
	}
}

func TestKeeperIsBounded(t *testing.T) {
	var c Keeper
	for i := range mostHeld + 10 {
		c.put(fmt.Sprint(i), userstore.Token{}, 0, time.Now())
	}
	if len(c.entries) > mostHeld {
		t.Errorf("%d entries", len(c.entries))
	}
}
