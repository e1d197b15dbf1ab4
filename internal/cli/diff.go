package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/internal/linediff"
)

const diffContext = 3 // lines shown around a change

// unifiedDiff tells how to get from one text to the other, in the format of
// diff -u; empty if they are the same.
func unifiedDiff(oldName, newName, before, after string) string {
	edits := linediff.Lines(slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after)))
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
			if e.Op != '+' {
				removed++
			}
			if e.Op != '-' {
				added++
			}
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", hunkRange(oldLine, removed), hunkRange(newLine, added))
		for _, e := range edits[start:end] {
			out.WriteByte(e.Op)
			out.WriteString(e.Line)
			if !strings.HasSuffix(e.Line, "\n") {
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
func hunks(edits []linediff.Edit) func(yield func(start, end int) bool) {
	return func(yield func(start, end int) bool) {
		start, end := -1, 0
		for i, e := range edits {
			if e.Op == ' ' {
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
