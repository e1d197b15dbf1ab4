package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number writes 12345.6 as 12,346 or, with digits, as 12,345.60.
func number(v float64, digits int) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', digits, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if v < 0 {
		whole = "-" + whole
	}
	if digits > 0 {
		whole += "." + fraction
	}
	return whole
}

// ratio writes how many times better v is than the best peer.
func (m metric) ratio(v, best float64) string {
	r := v / best
	if m.lower {
		r = best / v
	}
	if math.IsNaN(r) || math.IsInf(r, 0) {
		return "-"
	}
	return number(r, 2)
}

// bestPeer returns the best value of a metric among the contenders on one
// store that are not Pawl, and NaN when there is none.
func (run *report) bestPeer(scenarioName string, m metric, on store) float64 {
	best := math.NaN()
	for _, c := range run.suite.contenders {
		v, ok := run.value(scenarioName, c.name, m.key)
		if !ok || c.pawl || c.store != on {
			continue
		}
		if math.IsNaN(best) || m.lower && v < best || !m.lower && v > best {
			best = v
		}
	}
	return best
}

// scenarioTable writes a scenario's numbers, with the first metric's ratio to
// the best peer on the same kind of store.
func (run *report) scenarioTable(w *strings.Builder, s scenario) {
	fmt.Fprintf(w, "## %s\n\n%s\n\n", s.title, s.about)
	header, rule := "| | store |", "|---|---|"
	for _, m := range s.metrics {
		header += " " + m.title + " |"
		rule += "--:|"
	}
	fmt.Fprintf(w, "%s × best peer |\n%s--:|\n", header, rule)
	for _, c := range run.suite.contenders {
		if r, ok := run.find(s.name, c.name); ok {
			run.scenarioRow(w, s, c, r)
		}
	}
	w.WriteString("\n")
	run.scenarioNotes(w, s)
}

func (run *report) scenarioRow(w *strings.Builder, s scenario, c contender, r result) {
	title := c.title
	if c.pawl {
		title = "**" + title + "**"
	}
	fmt.Fprintf(w, "| %s | %s |", title, c.store)
	for _, m := range s.metrics {
		if v, ok := r.Values[m.key]; ok {
			fmt.Fprintf(w, " %s |", number(v, m.digits))
		} else {
			w.WriteString(" - |")
		}
	}
	lead := s.metrics[s.lead]
	if v, ok := r.Values[lead.key]; ok {
		fmt.Fprintf(w, " %s |\n", lead.ratio(v, run.bestPeer(s.name, lead, c.store)))
	} else {
		w.WriteString(" - |\n")
	}
}

// scenarioNotes says who is missing and why, and who did not always finish.
func (run *report) scenarioNotes(w *strings.Builder, s scenario) {
	for _, c := range run.suite.contenders {
		r, ok := run.find(s.name, c.name)
		switch {
		case !ok:
		case r.LeftOut != "":
			fmt.Fprintf(w, "%s has no number: %s.\n\n", c.title, r.LeftOut)
		case r.Note != "":
			fmt.Fprintf(w, "%s: %s.\n\n", c.title, r.Note)
		case r.Error != "":
			fmt.Fprintf(w, "%s failed: %s.\n\n", c.title, firstLine(r.Error))
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
