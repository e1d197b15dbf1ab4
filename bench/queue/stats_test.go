package main

import (
	"math"
	"testing"
)

func TestPercentileIsANumberOfTheList(t *testing.T) {
	for _, c := range []struct {
		numbers []float64
		p, want float64
	}{
		{[]float64{7}, 50, 7},
		{[]float64{4, 1, 3, 2}, 50, 2},
		{[]float64{5, 1, 3}, 50, 3},
		{[]float64{4, 1, 3, 2}, 99, 4},
		{[]float64{4, 1, 3, 2}, 100, 4},
		{[]float64{4, 1, 3, 2}, 0, 1},
	} {
		if got := percentile(c.numbers, c.p); got != c.want {
			t.Errorf("percentile(%v, %v) = %v, want %v", c.numbers, c.p, got, c.want)
		}
	}
	if got := percentile(nil, 50); !math.IsNaN(got) {
		t.Errorf("percentile of nothing = %v", got)
	}
}

func TestMediansAreTakenNumberByNumber(t *testing.T) {
	got := medians([]values{{"a": 1, "b": 30}, {"a": 2, "b": 10}, {"a": 9, "b": 20}})
	if got["a"] != 2 || got["b"] != 20 {
		t.Errorf("medians = %v", got)
	}
}

func TestNumbersHaveThousandsSeparators(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{
		{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1,000"}, {1234567.4, 0, "1,234,567"},
		{-12345.678, 2, "-12,345.68"}, {0.049, 1, "0.0"},
	} {
		if got := number(c.v, c.digits); got != c.want {
			t.Errorf("number(%v, %d) = %s, want %s", c.v, c.digits, got, c.want)
		}
	}
}
