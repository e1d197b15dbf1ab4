//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// report collects what happened.
type report struct {
	out io.Writer

	mu       sync.Mutex
	begun    time.Time
	findings []string                   // guarded by mu
	troubles []string                   // guarded by mu: what the driver could not do
	notes    []string                   // guarded by mu
	done     map[string]int             // faults by kind; guarded by mu
	times    map[string][]time.Duration // guarded by mu
	bounds   map[string]time.Duration   // guarded by mu
	repeats  map[string]int             // guarded by mu
}

func newReport(out io.Writer) *report {
	return &report{
		out: out, begun: time.Now(), done: map[string]int{}, times: map[string][]time.Duration{},
		bounds: map[string]time.Duration{}, repeats: map[string]int{},
	}
}

func (p *report) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format+"\n", args...) }

// say tells what happens now.
func (p *report) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printf("%s %4ds  %s", clock(time.Now()), int(time.Since(p.begun).Seconds()), fmt.Sprintf(format, args...))
}

// maxFindings bounds what is kept of what must not be.
const maxFindings = 200

func (p *report) find(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.say("FOUND  %s", text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.findings) < maxFindings {
		p.findings = append(p.findings, text)
	}
}

// trouble is something that says nothing about Pawl.
func (p *report) trouble(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.troubles = append(p.troubles, fmt.Sprintf(format, args...))
}

func (p *report) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *report) count(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[name]++
}

func (p *report) repeat(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repeats[why]++
}

// measured notes how soon a lane ran again.
func (p *report) measured(f fault, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.times[f.name] = append(p.times[f.name], took)
	p.bounds[f.name] = f.bound
}

// quantile of sorted values.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// enough is how many lanes must have been measured for a bound to be judged.
const enough = 20

// print tells everything, and reports whether nothing was found.
func (p *report) print(ledgers []*ledger) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printf("\n| Fault | Times | Lanes | p50 | p99 | max | Bound |\n|---|---|---|---|---|---|---|")
	for _, name := range sortedKeys(p.done) {
		took := p.times[name]
		if len(took) == 0 {
			p.printf("| %s | %d | 0 | | | | |", name, p.done[name])
			continue
		}
		slices.Sort(took)
		p99, bound := quantile(took, 0.99), ""
		if b := p.bounds[name]; b > 0 {
			bound = b.String()
			if p99 > b && len(took) >= enough {
				p.findings = append(p.findings, fmt.Sprintf("after %s lanes ran again within %s at p99; the bound is %s", name, seconds(p99), b))
			}
		}
		p.printf("| %s | %d | %d | %s | %s | %s | %s |", name, p.done[name], len(took), seconds(quantile(took, 0.5)), seconds(p99), seconds(took[len(took)-1]), bound)
	}
	p.printf("")
	for _, l := range ledgers {
		var parts []string
		for _, what := range sortedKeys(l.counts) {
			parts = append(parts, fmt.Sprintf("%s %d", what, l.counts[what]))
		}
		p.printf("Load: %s", strings.Join(parts, ", "))
		for _, why := range sortedKeys(l.persons) {
			p.printf("A person resumed (%d times): %s", l.persons[why], why)
		}
	}
	for _, why := range sortedKeys(p.repeats) {
		p.printf("Sent again under the same key or at once: %d, %s", p.repeats[why], why)
	}
	for _, list := range [][]string{p.notes, p.troubles} {
		for _, text := range list {
			p.printf("%s", text)
		}
	}
	p.printf("\nFindings: %d", len(p.findings))
	for _, text := range p.findings {
		p.printf("* %s", text)
	}
	return len(p.findings) == 0
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
