package connector

import (
	"strconv"
	"strings"
)

// Suggest asks whether the known name nearest to what was written was meant;
// if none is near, it returns the other text.
func Suggest(written string, known []string, other string) string {
	const furthest = 64 // bytes; nobody mistypes a name into something longer
	if len(written) > furthest {
		return other
	}
	best, least := "", 2+len(written)/4
	for _, name := range known {
		if d := slips(strings.ToLower(written), strings.ToLower(name)); d < least && d < len(name) {
			best, least = name, d
		}
	}
	if best == "" {
		return other
	}
	return "Did you mean " + best + "?"
}

// Quote shows what somebody wrote: quoted, without control characters, and
// not endless.
func Quote(written string) string {
	const longest = 80 // bytes
	if len(written) > longest {
		return strconv.Quote(strings.ToValidUTF8(written[:longest], "")) + "..."
	}
	return strconv.Quote(written)
}

// slips counts the bytes to add, drop, change, or swap with their neighbour to
// get from one word to the other.
func slips(from, to string) int {
	cost := make([][]int, len(from)+1)
	for i := range cost {
		cost[i] = make([]int, len(to)+1)
		cost[i][0] = i
	}
	for j := range cost[0] {
		cost[0][j] = j
	}
	for i := 1; i <= len(from); i++ {
		for j := 1; j <= len(to); j++ {
			change := 1
			if from[i-1] == to[j-1] {
				change = 0
			}
			cost[i][j] = min(cost[i-1][j]+1, cost[i][j-1]+1, cost[i-1][j-1]+change)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				cost[i][j] = min(cost[i][j], cost[i-2][j-2]+1)
			}
		}
	}
	return cost[len(from)][len(to)]
}
