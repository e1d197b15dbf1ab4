package demo

import (
	"fmt"
	"strings"
	"time"
)

// tally counts how the scenes of all rounds ended.
type tally struct {
	rounds int
	last   map[string]outcome // by scene; a broken promise stays
}

func newTally() *tally { return &tally{last: map[string]outcome{}} }

func (t *tally) add(outcomes []outcome) {
	t.rounds++
	for _, o := range outcomes {
		before, known := t.last[o.scene.name]
		if known && (before.broken() || o.cutShort()) {
			continue
		}
		t.last[o.scene.name] = o
	}
}

// summary says of every promise whether it was kept.
func (t *tally) summary(st *story, jobs, again int, took time.Duration) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, sc := range scenes() {
		o := t.last[sc.name]
		switch {
		case o.broken():
			fmt.Fprintf(&b, "%s %-14s %s\n%17sbroken: %s\n", st.mark(false), sc.name, sc.promise, "", o.err)
		case o.err != nil:
			fmt.Fprintf(&b, "- %-14s %s\n%17sthe demo ended first\n", sc.name, sc.promise, "")
		default:
			fmt.Fprintf(&b, "%s %-14s %s\n%17s%s\n", st.mark(true), sc.name, sc.promise, "", o.seen)
		}
	}
	fmt.Fprintf(&b, "\n%s\n%d jobs and %d repeated attempts in %s.\n", t.words(), jobs, again, seconds(took))
	return b.String()
}

// words sum it up in a sentence.
func (t *tally) words() string {
	cut := false
	for _, o := range t.last {
		cut = cut || o.cutShort()
	}
	switch {
	case t.verdict() != nil:
		return "Not every promise was kept."
	case cut:
		return "No promise was broken; not all could be shown."
	}
	return "Every promise was kept."
}

// verdict is an error when a promise was broken.
func (t *tally) verdict() error {
	var broken []string
	for _, sc := range scenes() {
		if t.last[sc.name].broken() {
			broken = append(broken, sc.name)
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return brokenPromises(broken)
}

// broken reports whether the scene ended with a broken promise.
func (o outcome) broken() bool { return o.err != nil && !o.cutShort() }
