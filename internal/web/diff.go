package web

import (
	"slices"
	"strings"
)

// diffLine is one line of a comparison.
type diffLine struct {
	Sign string // +, -, space, or … for lines that are left out
	Old  int    // numbers from 1; 0 if the line is not there
	New  int
	Text string
}

const (
	// maxCompared bounds the lines between the first and the last difference,
	// on each side: the comparison takes their product in time and memory.
	maxCompared = 2000

	// diffContext is how many unchanged lines are shown around a change.
	diffContext = 3
)

// diff compares two texts by lines. An empty text before shows all of the one
// after.
func diff(before, after string) []diffLine {
	a, b := lines(before), lines(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []diffLine
	for i := range head {
		out = append(out, diffLine{" ", i + 1, i + 1, a[i]})
	}
	out = append(out, compare(a[head:len(a)-tail], b[head:len(b)-tail], head)...)
	for i := range tail {
		o, n := len(a)-tail+i, len(b)-tail+i
		out = append(out, diffLine{" ", o + 1, n + 1, a[o]})
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

// compare finds the fewest lines to remove and add. head is how many lines come
// before. What is too long is shown as removed and added whole.
func compare(a, b []string, head int) (out []diffLine) {
	long := len(a) > maxCompared || len(b) > maxCompared
	var common [][]int32 // lengths of the longest common rest
	if !long {
		common = commonRests(a, b)
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case !long && i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, diffLine{" ", head + i + 1, head + j + 1, a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && (long || common[i+1][j] >= common[i][j+1]):
			out = append(out, diffLine{"-", head + i + 1, 0, a[i]})
			i++
		default:
			out = append(out, diffLine{"+", 0, head + j + 1, b[j]})
			j++
		}
	}
	return out
}

func commonRests(a, b []string) [][]int32 {
	common := make([][]int32, len(a)+1)
	cells := make([]int32, (len(a)+1)*(len(b)+1))
	for i := range common {
		common[i] = cells[i*(len(b)+1) : (i+1)*(len(b)+1)]
	}
	for i, line := range slices.Backward(a) {
		for j := len(b) - 1; j >= 0; j-- {
			if line == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
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
