package web

import (
	"strings"

	"github.com/pawlrun/pawl/internal/linediff"
)

// diffLine is one line of a comparison.
type diffLine struct {
	Sign string // +, -, space, or … for lines that are left out
	Old  int    // numbers from 1; 0 if the line is not there
	New  int
	Text string
}

// diffContext is how many unchanged lines are shown around a change.
const diffContext = 3

// diff compares two texts by lines. An empty text before shows all of the one
// after.
func diff(before, after string) []diffLine {
	var out []diffLine
	old, now := 0, 0
	for _, e := range linediff.Lines(lines(before), lines(after)) {
		line := diffLine{Sign: string(e.Op), Text: e.Line}
		if e.Op != '+' {
			old++
			line.Old = old
		}
		if e.Op != '-' {
			now++
			line.New = now
		}
		out = append(out, line)
	}
	if before == "" {
		return out
	}
	return around(out)
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// around leaves out what is far from any change.
func around(all []diffLine) []diffLine {
	near := make([]bool, len(all))
	for i := range all {
		if all[i].Sign == " " {
			continue
		}
		for k := max(0, i-diffContext); k <= min(len(all)-1, i+diffContext); k++ {
			near[k] = true
		}
	}
	var out []diffLine
	for i, line := range all {
		switch {
		case near[i]:
			out = append(out, line)
		case len(out) == 0 || out[len(out)-1].Sign != "…":
			out = append(out, diffLine{Sign: "…"})
		}
	}
	return out
}
