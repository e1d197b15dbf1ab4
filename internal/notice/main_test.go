package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every package of others that the program is built of, and every script of its
// pages, is covered by a licence in the notices.
func TestNoticesCoverEverything(t *testing.T) {
	t.Chdir("../..")
	parts, err := collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{} // by module, or by script
	for _, p := range parts {
		name, _, _ := strings.Cut(p.name, " ")
		texts[name] = len(p.licences) > 0 && strings.TrimSpace(p.licences[0].text) != ""
	}
	if !texts["Go"] {
		t.Error("the licence of Go is not there")
	}
	packages, err := golang(t.Context(), nil, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", program)
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(packages) {
		if strings.HasPrefix(path, "github.com/pawlrun/pawl") {
			continue
		}
		module := path
		for !texts[module] && strings.Contains(module, "/") {
			module = filepath.Dir(module)
		}
		if !texts[module] {
			t.Errorf("no licence covers %s", path)
		}
	}
	scripts, err := filepath.Glob(vendored + "/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("scripts of pages: %v, %v", scripts, err)
	}
	for _, script := range scripts {
		name, _, _ := strings.Cut(filepath.Base(script), ".")
		if name == "hx-sse" {
			name = "htmx" // it is an extension of it, from the same repository
		}
		if !texts[name] {
			t.Errorf("no licence covers %s", script)
		}
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		for _, l := range p.licences {
			if !strings.Contains(out.String(), p.name+" (") || !strings.Contains(out.String(), strings.TrimSpace(l.text)) {
				t.Errorf("%s of %s is not in the notices", l.file, p.name)
			}
		}
	}
}

func TestUnknownLicencesAreRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"none":    {"README.md": "Do what you like."},
		"unknown": {"LICENSE": "You may run it on Tuesdays."},
		"one of two": {"LICENSE": "Permission is hereby granted, free of charge, to any person obtaining a copy of this",
			"LICENSE-OTHER": "You may run it on Tuesdays."},
		"notice alone": {"NOTICE": "Made by somebody."},
	} {
		dir := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if p, err := read(name, dir, isLicence); err == nil {
			t.Errorf("%s: taken for %v", name, p.kinds())
		}
	}
}
