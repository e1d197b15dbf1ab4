package pgtest

import (
	"flag"
	"fmt"
	"strconv"
	"testing"
)

// Percent has rapid try so many per cent of the cases that it was told to try,
// until the test ends: on databases, cases take long. They are others each time,
// and with -rapid.checks=1000 ten times as many.
func Percent(t testing.TB, percent int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	all, err := strconv.Atoi(checks.String())
	if err == nil {
		err = checks.Set(fmt.Sprint(max(all*percent/100, 1)))
	}
	if err != nil {
		t.Fatalf("set how many cases rapid tries: %v", err)
	}
	t.Cleanup(func() { _ = checks.Set(fmt.Sprint(all)) })
}
