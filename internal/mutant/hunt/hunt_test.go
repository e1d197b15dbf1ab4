package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// What no test holds is found, and what a test holds is not accused.
func TestHuntFindsWhatNoTestHolds(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, []string{"-sample", "0", "-seed", "1", "./testdata/till"}); err != nil {
		t.Fatal(err)
	}
	told := out.String()
	for _, want := range []string{
		"till.go:11:2: not noticed: left out: Told++",
		"till.go:13:7: not noticed: turned round: amount == 13",
		"till.go:14:3: not reached: left out: Told = 0",
		"6 of 9 faults noticed (66%), 2 not noticed, 1 not reached",
		"| `testdata/till` | 9 | 9 | 6 | 2 | 1 | 66% |",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("the hunt does not say %q:\n%s", want, told)
		}
	}
}

// A package without tests is held by those of the folder above, or by those
// that are named.
func TestHuntBorrowsTests(t *testing.T) {
	for _, args := range [][]string{{"./testdata/till/drawer"}, {"-by", "./testdata/till", "./testdata/till/drawer"}} {
		var out bytes.Buffer
		if err := run(t.Context(), &out, append([]string{"-sample", "0", "-seed", "1"}, args...)); err != nil {
			t.Fatal(err)
		}
		if told := out.String(); !strings.Contains(told, "drawer.go:12:3: not noticed: left out: Opened++") || !strings.Contains(told, "2 of 3 faults noticed") {
			t.Errorf("the hunt says:\n%s", told)
		}
	}
}

// What does not compile, what is not there and nothing at all are told.
func TestHuntRefusesWhatItCannotBuild(t *testing.T) {
	for _, args := range [][]string{{"./testdata/broken"}, {}, {"./nowhere"}} {
		if err := run(t.Context(), new(bytes.Buffer), args); err == nil {
			t.Errorf("hunt %v found nothing to say", args)
		}
	}
}

// -only and -tests narrow a hunt to a place and to the tests that are to hold it.
func TestHuntTriesWhatIsNamed(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "till.go:10"}, "1 of 1 faults noticed"},
		{[]string{"-only", "till.go:10,till.go:11"}, "1 of 2 faults noticed (50%), 1 not noticed, 0 not reached"},
		{[]string{"-only", "till.go"}, "6 of 9 faults noticed"},
		{[]string{"-only", "drawer.go"}, "0 of 0 faults noticed"},
		{[]string{"-only", "till.go:10", "-tests", "Drawer"}, "0 of 1 faults noticed (0%), 0 not noticed, 1 not reached"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), &out, append(append([]string{"-sample", "0"}, c.args...), "./testdata/till")); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("hunt %v does not say %q:\n%s", c.args, c.want, &out)
		}
	}
	if err := run(t.Context(), new(bytes.Buffer), []string{"-tests", "(", "./testdata/till"}); err == nil || !strings.Contains(err.Error(), "-tests") {
		t.Errorf("an expression that is none: %v", err)
	}
}

// A seed draws the same faults each time, whatever else is hunted beside them.
func TestSeedDrawsTheSameFaults(t *testing.T) {
	drawn := func(besides ...int) (places []int) {
		h := &hunt{options: options{seed: 7, sample: 3}}
		for _, n := range append(besides, 9) {
			one := &prey{}
			for id := range n {
				one.faults = append(one.faults, &fault{id: id})
			}
			h.prey = append(h.prey, one)
		}
		h.draw()
		for _, f := range h.prey[len(besides)].faults {
			places = append(places, f.id)
		}
		return places
	}
	if alone, beside := drawn(), drawn(4, 20); len(alone) != 3 || !slices.Equal(alone, beside) {
		t.Errorf("drawn alone: %v, beside others: %v", alone, beside)
	}
}

// A draw can be taken in pieces: they are what it would be at once.
func TestADrawCanBeTakenInPieces(t *testing.T) {
	drawn := func(skip, sample int) (places []int) {
		one := &prey{}
		for id := range 9 {
			one.faults = append(one.faults, &fault{id: id})
		}
		h := &hunt{options: options{seed: 7, skip: skip, sample: sample}, prey: []*prey{one}}
		h.draw()
		for _, f := range one.faults {
			places = append(places, f.id)
		}
		return places
	}
	if all, pieces := drawn(0, 7), append(drawn(0, 3), drawn(3, 4)...); len(all) != 7 || !slices.Equal(all, pieces) {
		t.Errorf("at once: %v, in pieces: %v", all, pieces)
	}
	if behind := drawn(20, 3); len(behind) != 0 {
		t.Errorf("behind the last: %v", behind)
	}
}

// A test that fails by itself holds nothing and is named; one that a fault makes
// spin has noticed it, within the limit.
func TestHuntLeavesBrokenTestsOut(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, []string{"-sample", "0", "-limit", "1s", "./testdata/sour"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sour: TestAlwaysFails: fails by itself and was left out", "2 of 2 faults noticed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the hunt does not say %q:\n%s", want, &out)
		}
	}
}
