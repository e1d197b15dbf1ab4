package terms

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// Brought is what the newest of something that brings rows brought: a fetch of a
// source, a run of a producer, of which rows are events, or a slot of a schedule.
type Brought struct {
	Kind    pawl.Kind
	Handler string
	At      time.Time // when it ended
	Rows    int64
	Untold  bool // it told of none
}

// JudgeRows is whether enough rows were brought. before are the rows of those before
// it, the newest first: with usual, one is unmet if it has fewer than a quarter of
// their median, and at most one in ten of them had as few.
func JudgeRows(e *client.Expect, b Brought, before []int64) Verdict {
	v := NoRows(e, b.Kind)
	if e.Rows != client.RowsUsual {
		if least, err := strconv.ParseInt(string(e.Rows), 10, 64); err == nil && (b.Untold || b.Rows < least) {
			v.Met, v.Since = false, b.At
			v.Sentence = fmt.Sprintf("%s; at least %d are expected.", b, least)
		}
		return v
	}
	if len(before) < usualLeast {
		return v
	}
	asFew := 0
	for _, n := range before {
		if n <= b.Rows {
			asFew++
		}
	}
	sorted := slices.Sorted(slices.Values(before))
	median := sorted[len(sorted)/2]
	if b.Rows*farFewer >= median || asFew*rarely > len(before) {
		return v
	}
	v.Met, v.Since = false, b.At
	v.Sentence = fmt.Sprintf("%s; usually it %s about %d.", b, wordsOfRows(b.Kind).brings, median)
	return v
}

// NoRows is the verdict while nothing speaks against it.
func NoRows(e *client.Expect, kind pawl.Kind) Verdict {
	w := wordsOfRows(kind)
	if e.Rows == client.RowsUsual {
		return Verdict{Name: Rows, Met: true, Sentence: fmt.Sprintf("%s %s as many %ss as usual.", w.each, w.brings, w.row)}
	}
	return Verdict{Name: Rows, Met: true, Sentence: fmt.Sprintf("%s %s at least %s %ss.", w.each, w.brings, e.Rows, w.row)}
}

func (b Brought) String() string {
	w := wordsOfRows(b.Kind)
	who := w.one
	if b.Handler != "" {
		who += " of " + b.Handler
	}
	what := fmt.Sprintf("%s %s", w.brought, countRows(b.Rows, w.row))
	if b.Untold {
		what = "told of no number of " + w.row + "s"
	}
	return fmt.Sprintf("%s that ended at %s %s", who, pawl.FormatTime(b.At), what)
}

// rowWords are what people call it.
type rowWords struct{ each, one, brings, brought, row string }

func wordsOfRows(kind pawl.Kind) rowWords {
	switch kind {
	case pawl.KindWorkflow:
		return rowWords{"A run of a producer", "The run", "publishes", "published", "event"}
	case pawl.KindSchedule:
		return rowWords{"A run", "The run", "tells of", "told of", "row"}
	case pawl.KindSource:
	}
	return rowWords{"A fetch", "The fetch", "brings", "brought", "row"}
}

func countRows(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}
