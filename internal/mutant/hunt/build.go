package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// hunt is one run of the command.
type hunt struct {
	options

	scratch  string
	out      io.Writer
	prey     []*prey
	programs []*program
}

// prey is a package with faults in it.
type prey struct {
	name   string
	faults []*fault // those that were drawn, once draw was called
	all    int      // how many there are to draw from
	held   *program // its own tests; nil if -by names others
}

// program is the tests of one package, built with all faults.
type program struct {
	path   string // the import path of the package
	folder string
	file   string
	groups []*group
	broken []string // tests that fail by themselves
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
func (h *hunt) build(ctx context.Context) error {
	plants, replaced := &planter{}, map[string]string{}
	for _, name := range h.packages {
		found, err := list(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		one := &prey{name: strings.TrimPrefix(name, "./")}
		if one.faults, err = h.plant(plants, found, replaced); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		one.all = len(one.faults)
		h.prey = append(h.prey, one)
		if h.by != "" {
			continue
		}
		if one.held, err = h.testsOf(ctx, found.Dir); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if h.by != "" {
		for name := range strings.SplitSeq(h.by, ",") {
			if _, err := h.testsOf(ctx, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	overlayFile := filepath.Join(h.scratch, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		return err
	}
	for _, p := range h.programs {
		if _, err = exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-overlay", overlayFile, "-o", p.file, p.path).Output(); err != nil {
			return commandError("build the tests of "+p.path, err)
		}
	}
	return nil
}

// plant writes copies of a package's files and returns the faults in them that
// may be drawn.
func (h *hunt) plant(plants *planter, found listed, replaced map[string]string) ([]*fault, error) {
	before := len(plants.faults)
	for _, file := range found.GoFiles {
		original := filepath.Join(found.Dir, file)
		text, err := plants.plant(original)
		if err != nil {
			return nil, err
		}
		replaced[original] = filepath.Join(h.scratch, fmt.Sprintf("%d-%s", len(replaced), file))
		if err := os.WriteFile(replaced[original], text, 0o600); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(slices.Clone(plants.faults[before:]), func(f *fault) bool {
		return !h.wants(filepath.Base(f.place.Filename), f.place.Line)
	}), nil
}

// testsOf is the program with the tests of a package, or of the first folder
// above that has some.
func (h *hunt) testsOf(ctx context.Context, name string) (*program, error) {
	tests, err := list(ctx, name)
	for err == nil && len(tests.TestGoFiles)+len(tests.XTestGoFiles) == 0 {
		tests, err = list(ctx, filepath.Dir(tests.Dir))
	}
	if err != nil {
		return nil, fmt.Errorf("find tests: %w", err)
	}
	for _, p := range h.programs {
		if p.path == tests.ImportPath {
			return p, nil
		}
	}
	p := &program{path: tests.ImportPath, folder: tests.Dir, file: filepath.Join(h.scratch, fmt.Sprintf("tests-%d", len(h.programs)))}
	h.programs = append(h.programs, p)
	return p, nil
}

func commandError(what string, err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%s: %w\n%s", what, err, exit.Stderr)
	}
	return fmt.Errorf("%s: %w", what, err)
}
