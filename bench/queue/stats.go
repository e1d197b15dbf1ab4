package main

import (
	"math"
	"slices"
)

// percentile returns the smallest number that p percent of all numbers do not
// exceed; NaN for none.
func percentile(numbers []float64, p float64) float64 {
	if len(numbers) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(numbers))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// median is the middle number, the lower of two.
func median(numbers []float64) float64 { return percentile(numbers, 50) }

// medians merges rounds, number by number.
func medians(rounds []values) values {
	merged := values{}
	for key := range rounds[0] {
		var numbers []float64
		for _, round := range rounds {
			numbers = append(numbers, round[key])
		}
		merged[key] = median(numbers)
	}
	return merged
}
