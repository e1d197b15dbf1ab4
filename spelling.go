package pawl

import (
	"strconv"
	"strings"
)

// EditDistance counts the letters to add, drop, change, or swap with their neighbour
// to get from one word to the other: how far apart two spellings are. It takes
// time and memory of the product of their lengths, so callers refuse words that
// nobody mistypes.
func EditDistance(from, to string) int {
	a, b := []rune(from), []rune(to)
	before, above := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}

// Nearest is the known word that was probably meant by what somebody wrote;
// empty if none is near.
func Nearest(written string, known []string) string {
	const longest = 64 // bytes; nobody mistypes a word into something longer
	if len(written) > longest {
		return ""
	}
	best, least := "", 2+len([]rune(written))/3
	for _, word := range known {
		if n := EditDistance(strings.ToLower(written), strings.ToLower(word)); n < least && n < max(len(word), len(written)) {
			best, least = word, n
		}
	}
	return best
}

// Suggest asks whether the nearest of the known words was meant; if none is
// near, it returns the other text.
func Suggest(written string, known []string, other string) string {
	if best := Nearest(written, known); best != "" {
		return "Did you mean " + best + "?"
	}
	return other
}

// Quote shows what somebody wrote: without control characters, and not
// endless.
func Quote(written string) string {
	const longest = 80 // bytes
	if len(written) > longest {
		return strconv.Quote(strings.ToValidUTF8(written[:longest], "")) + "..."
	}
	return strconv.Quote(written)
}
