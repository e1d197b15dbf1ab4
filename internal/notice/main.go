// Command notice writes the licences of everything that is part of the program:
// the modules that it is built of on any of the systems of a release, Go itself,
// and the scripts that pages bring along.
//
//	go run ./internal/notice > NOTICES.txt
//
// It reads the module cache and needs no network once the modules are there. A
// licence that it does not know is an error.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Command and systems of a release, as make dist builds them.
const program = "./cmd/pawl"

func systems() []string {
	return []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}
}

// Where the scripts of pages are, and how the file with the licence of one ends.
const (
	vendored       = "internal/web/assets/vendor"
	vendoredSuffix = ".LICENSE.txt"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	parts, err := collect(ctx)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	text.WriteString("Pawl contains software of others, under the licences below.\n")
	for _, p := range parts {
		fmt.Fprintf(&text, "\n%s\n%s (%s)\n%[1]s\n", strings.Repeat("=", 78), p.name, strings.Join(p.kinds(), ", "))
		for _, l := range p.licences {
			fmt.Fprintf(&text, "\n--- %s ---\n\n%s\n", l.file, strings.TrimSpace(l.text))
		}
	}
	_, err = out.Write(text.Bytes())
	return err
}

// part is what has licences of its own.
type part struct {
	name     string
	licences []licence
}

type licence struct {
	file, text, kind string // kind is empty for what only adds to a licence, such as a NOTICE
}

func (p part) kinds() []string {
	var kinds []string
	for _, l := range p.licences {
		if l.kind != "" && !slices.Contains(kinds, l.kind) {
			kinds = append(kinds, l.kind)
		}
	}
	return kinds
}

// collect finds every part, sorted by name. Each has a licence that is known.
func collect(ctx context.Context) ([]part, error) {
	folders, err := modules(ctx)
	if err != nil {
		return nil, err
	}
	var parts []part
	var faults []error
	for name, dir := range folders {
		p, err := read(name, dir, isLicence)
		parts, faults = append(parts, p), append(faults, err)
	}
	scripts, err := filepath.Glob(filepath.Join(vendored, "*"+vendoredSuffix))
	if err != nil {
		return nil, err
	}
	for _, file := range scripts {
		base := filepath.Base(file)
		p, err := read(strings.TrimSuffix(base, vendoredSuffix), vendored, func(name string) bool { return name == base })
		parts, faults = append(parts, p), append(faults, err)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(a.name, b.name) })
	return parts, errors.Join(faults...)
}

// modules returns the folders of the modules that the program is built of, and of
// Go, by name and version.
func modules(ctx context.Context) (map[string]string, error) {
	folders := map[string]string{}
	for _, system := range systems() {
		goos, goarch, _ := strings.Cut(system, "/")
		out, err := golang(ctx, []string{"GOOS=" + goos, "GOARCH=" + goarch, "CGO_ENABLED=0"},
			"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", program)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				folders[name] = dir
			}
		}
	}
	root, err := golang(ctx, nil, "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	dir, version, _ := strings.Cut(strings.TrimSpace(root), "\n")
	folders["Go "+version] = dir
	return folders, nil
}

func golang(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(append(os.Environ(), "GOFLAGS="), env...) // the flags of a test are not those of a release
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return string(out), nil
}

// isLicence tells by its name whether a file is a licence or belongs to one.
func isLicence(name string) bool {
	return regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|patents)([-_.]|$)`).MatchString(name) && filepath.Ext(name) != ".go"
}

// adds tells whether a file only adds to a licence, by its name.
func adds(name string) bool {
	return regexp.MustCompile(`(?i)^(notice|patents|license-3rd-party|license-logo)`).MatchString(name)
}

// read gathers the licences in a folder; having none that is known is an error.
func read(name, dir string, want func(file string) bool) (part, error) {
	p := part{name: name}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return p, fmt.Errorf("%s: %w", name, err)
	}
	for _, e := range entries {
		if e.IsDir() || !want(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return p, fmt.Errorf("%s: %w", name, err)
		}
		l := licence{e.Name(), string(text), kindOf(string(text))}
		if l.kind == "" && !adds(l.file) {
			return p, fmt.Errorf("%s: the licence in %s is not known", name, filepath.Join(dir, l.file))
		}
		p.licences = append(p.licences, l)
	}
	if len(p.kinds()) == 0 {
		return p, fmt.Errorf("%s: there is no licence in %s", name, dir)
	}
	return p, nil
}

// kindOf names a licence by words that are in no other.
func kindOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, k := range []struct{ words, kind string }{
		{"apache license version 2.0", "Apache-2.0"},
		{"mozilla public license version 2.0", "MPL-2.0"},
		{"permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"},
		{"distribute this software for any purpose with or without fee is hereby granted, provided", "ISC"},
		{"distribute this software for any purpose with or without fee is hereby granted", "0BSD"},
		{"neither the name of", "BSD-3-Clause"},
		{"names of its contributors may", "BSD-3-Clause"},
		{"redistribution and use in source and binary forms", "BSD-2-Clause"},
		{"public domain", "public domain"},
	} {
		if strings.Contains(text, k.words) {
			return k.kind
		}
	}
	return ""
}
