package main

import (
	"errors"
	"strings"
	"testing"
)

func TestTableOfPeers(t *testing.T) {
	all := []*contender{
		{name: "Pawl", about: "sandbox", rates: map[bool][]float64{true: {100, 300, 200}, false: {900, 900, 900}}},
		{name: "Fine", version: "v1", about: "fine", rates: map[bool][]float64{true: {50, 10, 100}, false: {300, 300, 300}}},
		{name: "Broken", version: "v2", about: "broken", rates: map[bool][]float64{true: {40, 40, 40}, false: {40}}, failed: errors.New("out of\nluck")},
		{name: "Never", about: "never built", failed: errors.New("build: no")},
	}
	var report strings.Builder
	peerTable(&report, all, peerSizes{rounds: 3, many: 1000})
	for _, want := range []string{
		"| Pawl | 200 |  | 900 |  |\n",
		"| Fine v1 | 50 | 4.0x | 300 | 3.0x |\n",
		"| Broken v2 | 40 | 5.0x | failed |  |\n",
		"| Never | failed |  | failed |  |\n",
		"* Broken: broken.\n  **It failed:** out of luck\n",
		"* Never: never built.\n  **It failed:** build: no\n",
	} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, report.String())
		}
	}
	if err := failures(all); err == nil || !strings.Contains(err.Error(), "Never: build: no") {
		t.Errorf("failures: %v", err)
	}
}

func TestAPeerThatCannotBeBuilt(t *testing.T) {
	if _, err := build(t.Context(), t.TempDir(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "build: ") {
		t.Errorf("build of an empty folder: %v", err)
	}
}
