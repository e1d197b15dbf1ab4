package pawl

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
