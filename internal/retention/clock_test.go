package retention

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// hours looks at the clock every hour.
func hours(c Clock, from time.Time, n int) (Clock, time.Time) {
	at := from
	for range n {
		at = at.Add(time.Hour)
		c, _, _ = c.Look(at)
	}
	return c, at
}

func TestAgesCountWhatWasSeenToPass(t *testing.T) {
	c, _, leapt := Clock{}.Look(start)
	if leapt || !c.Cut(day).Equal(start.Add(-day)) {
		t.Errorf("the first look: %v, %v", c, leapt)
	}
	c, at := hours(c, start, 48)
	if got := c.Cut(30 * time.Hour); len(c.Leaps) != 0 || !got.Equal(at.Add(-30*time.Hour)) {
		t.Errorf("after two days: %v of %v", got, c)
	}
	if !c.Cut(Forever).IsZero() || !(Clock{}).Cut(day).IsZero() {
		t.Error("what is kept forever has a cut")
	}
}

// A clock that jumps a year ahead, and back again, makes nothing a year older.
func TestAClockThatJumpsMakesNothingOlder(t *testing.T) {
	c, _, _ := Clock{}.Look(start)
	c, at := hours(c, start, 24*20)
	year := at.AddDate(1, 0, 0)
	c, leap, leapt := c.Look(year)
	if !leapt || !leap.Before.Equal(at) || !leap.After.Equal(year) {
		t.Fatalf("the jump was not seen: %v", leap)
	}
	for age, want := range map[time.Duration]time.Time{
		time.Hour: at, 24 * time.Hour: at, 25 * time.Hour: at.Add(-time.Hour), 7 * day: at.Add(-6 * day), 90 * day: at.Add(-89 * day),
	} {
		if got := c.Cut(age); !got.Equal(want) {
			t.Errorf("rows of %v are those before %v, want %v", age, got, want)
		}
	}
	// It stays there, as when it was wrong before.
	later, then := hours(c, year, 48)
	if got := later.Cut(day); !got.Equal(then.Add(-day)) {
		t.Errorf("a day after the jump: %v", got)
	}
	if got := later.Cut(7 * day); !got.Equal(at.Add(-4 * day)) {
		t.Errorf("a week: %v", got)
	}
	// It is set right.
	c, _, leapt = c.Look(at.Add(time.Minute))
	if !leapt {
		t.Fatal("the way back was not seen")
	}
	c, at = hours(c, at.Add(time.Minute), 48)
	if got := c.Cut(day); !got.Equal(at.Add(-day)) {
		t.Errorf("a day after it was set right: %v, want %v", got, at.Add(-day))
	}
	if got := c.Cut(7 * day); got.After(at.Add(-6 * day)) {
		t.Errorf("a week after it was set right: %v", got)
	}
}

// Clocks of nodes differ a little.
func TestASlightlyEarlierClockIsNoLeap(t *testing.T) {
	c, _, _ := Clock{}.Look(start)
	c, _, leapt := c.Look(start.Add(-time.Minute))
	if leapt || !c.At.Equal(start) {
		t.Errorf("%v", c)
	}
}

// What is believed of a leap is all of one that is just as long, which is one nevertheless:
// whoever counts leaps must not miss it.
func TestAJumpOfWhatIsBelievedIsALeap(t *testing.T) {
	c, _, _ := Clock{}.Look(start)
	if _, _, leapt := c.Look(start.Add(Believed - 1)); leapt {
		t.Error("less than that is a leap")
	}
	if _, _, leapt := c.Look(start.Add(Believed)); !leapt {
		t.Error("as much as that is no leap")
	}
}

// Whatever clocks do, a row is never removed before as much time was seen to
// pass since it was written as the age says, but for what is believed of leaps.
func TestNothingIsOldBeforeItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type look struct {
			at   time.Time
			seen time.Duration // really, since the beginning
		}
		c, at, seen := Clock{}, start, time.Duration(0)
		var looks []look
		leaps := 0
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			really := time.Duration(rapid.IntRange(0, 600).Draw(t, "minutes")) * time.Minute
			seen += really
			at = at.Add(really)
			if rapid.IntRange(0, 9).Draw(t, "jumps") == 0 {
				at = at.Add(time.Duration(rapid.IntRange(-400, 400).Draw(t, "days")) * day)
			}
			var leapt bool
			if c, _, leapt = c.Look(at); leapt {
				leaps++
			}
			looks = append(looks, look{at, seen})
		}
		age := time.Duration(rapid.IntRange(1, 400).Draw(t, "age")) * time.Hour
		cut := c.Cut(age)
		for _, l := range looks { // each stands for a row that was written then
			// Small steps back are no leaps; the clock is behind by up to an hour after each.
			slack := time.Duration(leaps)*(Believed+backward) + backward
			if l.at.Before(cut) && seen-l.seen+slack < age {
				t.Fatalf("a row of %v is older than %v after %v", l.at, age, seen-l.seen)
			}
		}
	})
}
