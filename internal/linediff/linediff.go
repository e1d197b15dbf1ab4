// Package linediff finds the lines by which two texts differ. It is pure.
package linediff

import "slices"

// mostEdits bounds the search for the shortest way from one text to the other,
// which takes the square of it. Texts that differ in more lines are told as
// replaced.
const mostEdits = 1000

// Edit is one line of a comparison: ' ' is in both texts, '-' in the old one
// only, '+' in the new one only.
type Edit struct {
	Op   byte
	Line string
}

// Lines compares texts line by line.
func Lines(before, after []string) []Edit {
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

func appendLines(edits []Edit, op byte, lines []string) []Edit {
	for _, line := range lines {
		edits = append(edits, Edit{op, line})
	}
	return edits
}

// shortestEdits finds the fewest edits by the algorithm of Myers: reach[k] is
// how far one gets in the old text on diagonal k (old minus new position) with
// the edits spent so far.
func shortestEdits(before, after []string) []Edit {
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
func walkBack(history [][]int, middle int, before, after []string) []Edit {
	var edits []Edit
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
			edits = append(edits, Edit{' ', before[x-1]})
		}
		switch {
		case x > fromX:
			edits = append(edits, Edit{'-', before[x-1]})
		case y > fromY:
			edits = append(edits, Edit{'+', after[y-1]})
		}
		x, y = fromX, fromY
	}
	slices.Reverse(edits)
	return edits
}
