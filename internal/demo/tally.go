package demo

import (
	"fmt"
	"strings"
	"time"
)

// tally is how the scenes ended, in their order.
type tally []outcome

// summary says of every promise whether it was kept.
func (t tally) summary(st *story, jobs, again int, took time.Duration) string {
	var b strings.Builder
	b.WriteString("\n")
	for _, o := range t {
		sc := o.scene
		switch {
		case o.broken():
			fmt.Fprintf(&b, "%s %-14s %s\n%17sbroken: %s\n", st.mark(false), sc.name, sc.promise, "", o.err)
		case o.err != nil:
			fmt.Fprintf(&b, "- %-14s %s\n%17snot shown: the demo ended first\n", sc.name, sc.promise, "")
		default:
			fmt.Fprintf(&b, "%s %-14s %s\n%17s%s\n", st.mark(true), sc.name, sc.promise, "", o.seen)
		}
	}
	fmt.Fprintf(&b, "\n%s\n%d jobs and %d repeated attempts in %s.\n", t.words(), jobs, again, seconds(took))
	return b.String()
}

// words sum it up in a sentence.
func (t tally) words() string {
	cut := false
	for _, o := range t {
		cut = cut || o.cutShort()
	}
	switch {
	case t.verdict() != nil:
		return "Not every promise was kept."
	case cut:
		return "No promise was broken, but not all were shown."
	}
	return "Every promise was kept."
}

// verdict is an error when a promise was broken.
func (t tally) verdict() error {
	var broken []string
	for _, o := range t {
		if o.broken() {
			broken = append(broken, o.scene.name)
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return brokenPromises(broken)
}

// broken reports whether the scene ended with a broken promise.
func (o outcome) broken() bool { return o.err != nil && !o.cutShort() }
