package cli

import (
	"fmt"
	"slices"
	"strings"
)

const (
	diffContext = 3 // lines shown around a change

	// mostEdits bounds the search for the shortest way from one text to the
	// other, which takes the square of it. Texts that differ in more lines are
	// told as replaced.
	mostEdits = 1000
)

// lineEdit is one line of a comparison: ' ' is in both texts, '-' in the old
// one only, '+' in the new one only.
type lineEdit struct {
	op   byte
	line string // with its line feed, unless it is the last one and has none
}

// unifiedDiff tells how to get from one text to the other, in the format of
// diff -u; empty if they are the same.
func unifiedDiff(oldName, newName, before, after string) string {
	edits := diffLines(slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after)))
	var out strings.Builder
	oldLine, newLine, at := 0, 0, 0 // lines that are behind us, and edits
	for start, end := range hunks(edits) {
		for ; at < start; at++ { // lines of both
			oldLine++
			newLine++
		}
		if out.Len() == 0 {
			fmt.Fprintf(&out, "--- %s\n+++ %s\n", oldName, newName)
		}
		removed, added := 0, 0
		for _, e := range edits[start:end] {
			if e.op != '+' {
				removed++
			}
			if e.op != '-' {
				added++
			}
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", hunkRange(oldLine, removed), hunkRange(newLine, added))
		for _, e := range edits[start:end] {
			out.WriteByte(e.op)
			out.WriteString(e.line)
			if !strings.HasSuffix(e.line, "\n") {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
		oldLine, newLine, at = oldLine+removed, newLine+added, end
	}
	return out.String()
}

// hunkRange is where a hunk begins in a text and how many of its lines it has.
// One without lines names the line before it.
func hunkRange(behind, count int) string {
	if count == 0 {
		return fmt.Sprintf("%d,0", behind)
	}
	return fmt.Sprintf("%d,%d", behind+1, count)
}

// hunks yields the beginning and end of each group of changes, with the lines
// around it. Groups whose surroundings touch are one.
func hunks(edits []lineEdit) func(yield func(start, end int) bool) {
	return func(yield func(start, end int) bool) {
		start, end := -1, 0
		for i, e := range edits {
			if e.op == ' ' {
				continue
			}
			if start >= 0 && i-diffContext > end {
				if !yield(start, end) {
					return
				}
				start = -1
			}
			if start < 0 {
				start = max(0, i-diffContext)
			}
			end = min(len(edits), i+1+diffContext)
		}
		if start >= 0 {
			yield(start, end)
		}
	}
}

// diffLines compares texts line by line.
func diffLines(before, after []string) []lineEdit {
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	edits := appendLines(nil, ' ', before[:head])
	edits = append(edits, shortestEdits(before[head:len(before)-tail], after[head:len(after)-tail])...)
	return appendLines(edits, ' ', before[len(before)-tail:])
}

func appendLines(edits []lineEdit, op byte, lines []string) []lineEdit {
	for _, line := range lines {
		edits = append(edits, lineEdit{op, line})
	}
	return edits
}

// shortestEdits finds the fewest edits by the algorithm of Myers: reach[k] is
// how far one gets in the old text on diagonal k (old minus new position) with
// the edits spent so far.
func shortestEdits(before, after []string) []lineEdit {
	most := min(len(before)+len(after), mostEdits)
	middle := most + 1 // of reach, which has diagonals below zero too
	reach := make([]int, 2*middle+1)
	var history [][]int
	for spent := 0; spent <= most; spent++ {
		history = append(history, slices.Clone(reach))
		for k := -spent; k <= spent; k += 2 {
			x := reach[middle+k-1] + 1 // remove a line
			if comesFromAbove(reach, middle, k, spent) {
				x = reach[middle+k+1] // add a line
			}
			for x < len(before) && x-k < len(after) && before[x] == after[x-k] {
				x++
			}
			reach[middle+k] = x
			if x >= len(before) && x-k >= len(after) {
				return walkBack(history, middle, before, after)
			}
		}
	}
	return appendLines(appendLines(nil, '-', before), '+', after)
}

// comesFromAbove reports whether diagonal k is reached best from k+1.
func comesFromAbove(reach []int, middle, k, spent int) bool {
	return k == -spent || (k != spent && reach[middle+k-1] < reach[middle+k+1])
}

// walkBack collects the edits of the way that was found, from its end.
func walkBack(history [][]int, middle int, before, after []string) []lineEdit {
	var edits []lineEdit
	x, y := len(before), len(after)
	for spent, reach := range slices.Backward(history) {
		k := x - y
		from := k - 1
		if comesFromAbove(reach, middle, k, spent) {
			from = k + 1
		}
		fromX, fromY := reach[middle+from], reach[middle+from]-from
		if spent == 0 {
			fromX, fromY = 0, 0
		}
		for ; x > fromX && y > fromY; x, y = x-1, y-1 {
			edits = append(edits, lineEdit{' ', before[x-1]})
		}
		switch {
		case x > fromX:
			edits = append(edits, lineEdit{'-', before[x-1]})
		case y > fromY:
			edits = append(edits, lineEdit{'+', after[y-1]})
		}
		x, y = fromX, fromY
	}
	slices.Reverse(edits)
	return edits
}
