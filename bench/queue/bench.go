package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/pawlrun/pawl/bench/subject"
)

// benchDir is where the benchmark's files are.
type benchDir struct {
	root    string // the bench module, with node/ and riversqlite/
	scratch string // for programs and databases; removed at the end
}

// findRoot looks for the bench module here and below.
func findRoot() (string, error) {
	for _, dir := range []string{".", "bench", ".."} {
		if _, err := os.Stat(filepath.Join(dir, "node", "driver.mjs")); err == nil {
			return filepath.Abs(dir)
		}
	}
	return "", fmt.Errorf("find the bench module: start in bench/ or above it")
}

// entrant is a contender that is ready to start, or the reason why not.
type entrant struct {
	contender
	argv    []string
	leftOut string
}

// bench is one run of the benchmark.
type bench struct {
	dir      benchDir
	cluster  *cluster
	size     sizes
	entrants []entrant
	only     filter
	suite    suite
	progress io.Writer
	profile  string // of contenders in Go; each trial writes it anew
	files    int    // SQLite files made so far
}

// result is what one contender did in one scenario.
type result struct {
	Scenario string `json:"scenario"`
	Subject  string `json:"subject"`
	Values   values `json:"values,omitempty"`
	Rounds   int    `json:"rounds,omitempty"`
	Note     string `json:"note,omitempty"`    // what else is to be said of the values
	LeftOut  string `json:"leftOut,omitempty"` // why it has no values: it takes no part, is too slow, or broke a promise
	Error    string `json:"error,omitempty"`   // why it has no values though it should
}

// roundBudget is the time after which no further round of a scenario begins.
const roundBudget = 30 * time.Second

// trialLimit bounds one round; the longest load a million jobs.
const trialLimit = 15 * time.Minute

// prepare makes the contenders ready; those that cannot be are left out.
func (b *bench) prepare(ctx context.Context) {
	for _, c := range b.suite.contenders {
		e := entrant{contender: c}
		if !b.only.wantsSubject(c.name) {
			continue
		}
		argv, err := c.argv(ctx, b.dir, b.profile)
		if err != nil {
			e.leftOut = firstLine(err.Error())
			fmt.Fprintf(b.progress, "%s is left out: %v\n", c.title, err)
		}
		e.argv = argv
		b.entrants = append(b.entrants, e)
	}
}

// run asks every scenario of every contender.
func (b *bench) run(ctx context.Context) []result {
	var results []result
	for _, s := range b.suite.scenarios {
		if !b.only.wantsScenario(s.name) {
			continue
		}
		for _, e := range b.entrants {
			if s.only != "" && s.only != e.store || ctx.Err() != nil {
				continue
			}
			r := b.measure(ctx, s, e)
			results = append(results, r)
			fmt.Fprintln(b.progress, r.line(s))
		}
	}
	return results
}

// measure runs a scenario on one contender, a few times if it is quick.
func (b *bench) measure(ctx context.Context, s scenario, e entrant) result {
	r := result{Scenario: s.name, Subject: e.name}
	if e.leftOut != "" {
		r.LeftOut = e.leftOut
		return r
	}
	if s.lanes && e.noLanes != "" {
		r.LeftOut = e.noLanes
		return r
	}
	wanted := 1
	if s.repeat {
		wanted = b.size.Rounds
	}
	var rounds []values
	began := time.Now()
	for len(rounds) < wanted && time.Since(began) < roundBudget {
		v, err := b.measureOnce(ctx, s, e)
		if !e.pawl && errors.Is(err, errUnfinished) && len(rounds) > 0 {
			r.Note = "a further round " + firstLine(err.Error())
			break
		}
		if err != nil {
			r.fail(err, e.pawl)
			return r
		}
		rounds = append(rounds, v)
	}
	r.Values, r.Rounds = medians(rounds), len(rounds)
	if s.derive != nil {
		s.derive(r.Values)
	}
	return r
}

// fail records why there is no number. What is a finding about a peer is a
// fault of Pawl.
func (r *result) fail(err error, pawl bool) {
	if !pawl && (errors.Is(err, errUnfinished) || errors.Is(err, errVoid)) {
		r.LeftOut = firstLine(err.Error())
		return
	}
	r.Error = err.Error()
}

func (b *bench) measureOnce(ctx context.Context, s scenario, e entrant) (_ values, err error) {
	ctx, cancel := context.WithTimeout(ctx, trialLimit)
	defer cancel()
	cfg := subject.Config{PerLane: s.perLane}
	if s.lanes {
		cfg.Lanes = b.size.Lanes
	}
	if s.few {
		cfg.Lanes = b.size.FewLanes
	}
	t, err := b.startTrial(ctx, e, cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if endErr := t.end(ctx); err == nil && endErr != nil {
			err = fmt.Errorf("end trial: %w", endErr)
		}
	}()
	return s.run(ctx, t)
}

// line is the result in one line, for those who watch.
func (r result) line(s scenario) string {
	parts := []string{fmt.Sprintf("%-8s %-18s", r.Scenario, r.Subject)}
	switch {
	case r.LeftOut != "":
		parts = append(parts, "left out: "+r.LeftOut)
	case r.Error != "":
		parts = append(parts, "ERROR: "+r.Error)
	}
	for _, m := range s.metrics {
		if v, ok := r.Values[m.key]; ok && !math.IsNaN(v) {
			parts = append(parts, m.title+" "+number(v, m.digits)+";")
		}
	}
	return strings.Join(parts, " ")
}

// filter chooses scenarios and contenders by two regular expressions.
type filter struct{ scenario, subject *regexp.Regexp }

// parseFilter reads SCENARIO/SUBJECT; either may be missing.
func parseFilter(text string) (filter, error) {
	scenarioText, subjectText, _ := strings.Cut(text, "/")
	s, err := regexp.Compile(scenarioText)
	if err != nil {
		return filter{}, fmt.Errorf("read -only: %w", err)
	}
	c, err := regexp.Compile(subjectText)
	if err != nil {
		return filter{}, fmt.Errorf("read -only: %w", err)
	}
	return filter{scenario: s, subject: c}, nil
}

func (f filter) wantsScenario(name string) bool { return f.scenario.MatchString(name) }
func (f filter) wantsSubject(name string) bool  { return f.subject.MatchString(name) }
