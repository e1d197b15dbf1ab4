package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/mutant"
)

// quick is how long the tests of the first round take in all: most faults are
// noticed by a test that takes no time.
const quick = 5 * time.Second

// prey is a package whose tests are built with faults in it.
type prey struct {
	folder  string
	scratch string
	program string
	faults  []fault
	tests   []*test
	limit   time.Duration
	spend   time.Duration
}

type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

func huntPackage(ctx context.Context, out io.Writer, name string, o options) error {
	scratch, err := os.MkdirTemp("", "pawl-hunt-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	p := &prey{scratch: scratch, program: filepath.Join(scratch, "tests"), limit: o.limit, spend: o.spend}
	if err := p.build(ctx, name, o); err != nil {
		return err
	}
	broken, err := p.observe(ctx, o.workers)
	if err != nil {
		return err
	}
	drawn := p.faults
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	if o.sample > 0 && o.sample < len(drawn) {
		drawn = drawn[:o.sample]
	}
	verdicts := make([]verdict, len(drawn))
	var mu sync.Mutex // guards out: what is found is told at once
	each(o.workers, len(drawn), func(i int) {
		if verdicts[i] = p.try(ctx, drawn[i]); ctx.Err() != nil {
			return
		}
		if word := words[verdicts[i]]; word != "" {
			mu.Lock()
			defer mu.Unlock()
			place := drawn[i].place
			_, _ = fmt.Fprintf(out, "%s/%s:%d:%d: %s: %s\n", strings.TrimPrefix(name, "./"), filepath.Base(place.Filename), place.Line, place.Column, word, drawn[i].what)
		}
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	return report(out, name, verdicts, broken)
}

// listed is what the go command knows of a package.
type listed struct {
	Dir, ImportPath                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

func list(ctx context.Context, name string) (found listed, err error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles", name).Output()
	if err != nil {
		return found, commandError("go list", err)
	}
	return found, json.Unmarshal(text, &found)
}

// build plants all faults and compiles the tests with the copies in place of
// the files.
func (p *prey) build(ctx context.Context, name string, o options) error {
	found, err := list(ctx, name)
	if err != nil {
		return err
	}
	tests := found
	if o.by != "" {
		if tests, err = list(ctx, o.by); err != nil {
			return err
		}
	}
	for len(tests.TestGoFiles)+len(tests.XTestGoFiles) == 0 { // those of the folder above hold it, too
		if tests, err = list(ctx, filepath.Dir(tests.Dir)); err != nil {
			return fmt.Errorf("find tests of %s: %w", name, err)
		}
	}
	p.folder = tests.Dir
	plants, replaced := &planter{}, map[string]string{}
	for _, file := range found.GoFiles {
		if o.only != "" && file != o.only {
			continue
		}
		original := filepath.Join(found.Dir, file)
		text, err := plants.plant(original)
		if err != nil {
			return err
		}
		replaced[original] = filepath.Join(p.scratch, file)
		if err := os.WriteFile(replaced[original], text, 0o600); err != nil {
			return err
		}
	}
	p.faults = plants.faults
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	overlayFile := filepath.Join(p.scratch, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		return err
	}
	if _, err = exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlayFile, "-o", p.program, tests.ImportPath).Output(); err != nil {
		return commandError("build the tests", err)
	}
	return nil
}

// observe runs each test alone and notes what it reaches. Tests that fail by
// themselves are left out, and named.
func (p *prey) observe(ctx context.Context, workers int) (broken []string, err error) {
	list := exec.CommandContext(ctx, p.program, "-test.list", ".")
	list.Dir = p.folder
	names, err := list.Output()
	if err != nil {
		return nil, commandError("list the tests", err)
	}
	var all []*test
	for name := range strings.Lines(string(names)) {
		if name = strings.TrimSpace(name); strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
			all = append(all, &test{name: name, reaches: map[int]bool{}})
		}
	}
	passed := make([]bool, len(all))
	each(workers, len(all), func(i int) {
		trace := filepath.Join(p.scratch, fmt.Sprintf("trace-%d", i))
		begun := time.Now()
		passed[i] = p.run(ctx, []*test{all[i]}, 10*time.Minute, mutant.EnvTrace+"="+trace)
		all[i].took = time.Since(begun)
		text, _ := os.ReadFile(trace)
		for line := range strings.Lines(string(text)) {
			if id, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				all[i].reaches[id] = true
			}
		}
	})
	for i, one := range all {
		if passed[i] {
			p.tests = append(p.tests, one)
		} else {
			broken = append(broken, one.name)
		}
	}
	slices.SortFunc(p.tests, func(a, b *test) int { return cmp.Compare(a.took, b.took) })
	return broken, ctx.Err()
}

type verdict int

const (
	survived verdict = iota
	noticed
	unreached
)

// words are how a verdict is told; what was noticed is not worth a line.
var words = map[verdict]string{survived: "not noticed", unreached: "not reached"} //nolint:gochecknoglobals // a constant table

// try meets one fault with the tests that reach it.
func (p *prey) try(ctx context.Context, f fault) verdict {
	var first, rest []*test
	var spent time.Duration
	for _, one := range p.tests {
		if !one.reaches[f.id] {
			continue
		}
		switch spent += one.took; {
		case spent <= quick || len(first) == 0:
			first = append(first, one)
		case p.spend == 0 || spent <= p.spend:
			rest = append(rest, one)
		}
	}
	if len(first) == 0 {
		return unreached
	}
	for _, tests := range [][]*test{first, rest} {
		if len(tests) == 0 {
			continue
		}
		usual := time.Duration(0)
		for _, one := range tests {
			usual += one.took
		}
		if !p.run(ctx, tests, 3*usual+p.limit, mutant.EnvActive+"="+strconv.Itoa(f.id)) {
			return noticed
		}
	}
	return survived
}

// run reports whether tests pass in time.
func (p *prey) run(ctx context.Context, tests []*test, limit time.Duration, env string) bool {
	names := make([]string, len(tests))
	for i, one := range tests {
		names[i] = regexp.QuoteMeta(one.name)
	}
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.program, "-test.failfast", "-test.timeout", limit.String(), "-test.run", "^("+strings.Join(names, "|")+")$")
	cmd.Dir, cmd.Env = p.folder, append(os.Environ(), env)
	cmd.WaitDelay = time.Second
	return cmd.Run() == nil
}

func report(out io.Writer, name string, verdicts []verdict, broken []string) error {
	var text bytes.Buffer
	count := map[verdict]int{}
	for _, v := range verdicts {
		count[v]++
	}
	for _, one := range broken {
		fmt.Fprintf(&text, "%s: %s fails by itself and was left out\n", name, one)
	}
	share := 100
	if len(verdicts) > 0 {
		share = 100 * count[noticed] / len(verdicts)
	}
	fmt.Fprintf(&text, "%s: %d of %d faults noticed (%d%%), %d not noticed, %d not reached\n\n",
		name, count[noticed], len(verdicts), share, count[survived], count[unreached])
	_, err := out.Write(text.Bytes())
	return err
}

// each calls do for 0 to n-1, some at the same time.
func each(workers, n int, do func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range max(workers, 1) {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}

func commandError(what string, err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%s: %w\n%s", what, err, exit.Stderr)
	}
	return fmt.Errorf("%s: %w", what, err)
}
