package main

import (
	"bytes"
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
