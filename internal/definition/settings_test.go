package definition

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/redact"
)

// settings are what connections look like.
type settings struct {
	URL     Secret        `json:"url" definition:"required,also=address"`
	Headers Secrets       `json:"headers"`
	Timeout time.Duration `json:"timeout" definition:"default=30s,min=1s,max=10m"`
	MaxBody Size          `json:"maxBody" definition:"default=4MiB,min=1,max=32MiB"`
	Port    int           `json:"port" definition:"default=587,min=1,max=65535"`
	First   int           `json:"first" definition:"default=1,min=0,max=9"`
	Track   bool          `json:"track" definition:"default=true"`
	Command []string      `json:"command" definition:"nonempty,max=3"`
	Pin     string        `json:"pin" definition:"max=12" pattern:"^sha:[0-9a-z]+$" is:"a pin such as sha:5"`
	Inner   inner         `json:"inner"`
}

type inner struct {
	Mode string `json:"mode" definition:"default=append,oneof=append|replace"`
}

func TestSettingsAreReadByTags(t *testing.T) {
	environment := map[string]string{"KEY": "s3cret-key", "LATER": "${KEY}"}
	for text, want := range map[string]string{
		"{}":                                "1:1 /url url is missing",
		"url: 5":                            "1:6 /url url must be a text: put it in quotes",
		"url: ''":                           "1:6 /url url is empty",
		"url: a\naddress: b":                "2:1 /address url and address mean the same: keep one of them",
		"url: '${GONE} ${NO}'":              "1:6 /url url: the environment variable GONE is not set; the environment variable NO is not set",
		"url: file:nowhere":                 "1:6 /url url: read the file nowhere: no such file or directory",
		"url: a\ntimeout: soon":             `2:10 /timeout timeout "soon" is not a length of time such as 30s or 2m`,
		"url: a\ntimeout: 1h":               "2:10 /timeout timeout must be from 1s to 10m",
		"url: a\nmaxBody: 1GiB":             "2:10 /maxBody maxBody must be from 1 to 32MiB",
		"url: a\nmaxBody: lots":             `2:10 /maxBody maxBody "lots" is not a size such as 512KiB or 4MiB`,
		"url: a\nport: 0":                   "2:7 /port port must be from 1 to 65535",
		"url: a\nport: smtp":                "2:7 /port port must be a whole number",
		"url: a\ncommand: []":               "2:10 /command command is empty",
		"url: a\ncommand: sh":               "2:10 /command command must be a list of texts",
		"url: a\ncommand: [a, b, c, d]":     "2:10 /command there are 4 command; at most 3 are allowed",
		"url: a\npin: abc":                  `2:6 /pin "abc" is not a pin such as sha:5`,
		"url: a\npin: sha:123456789":        "2:6 /pin the text has 13 bytes; at most 12 are allowed",
		"url: a\ninner: {mode: apend}":      `2:15 /inner/mode mode "apend" is not known. Did you mean append?`,
		"url: a\nheaders: {A: b, C: 5}":     "2:20 /headers/C C must be a text: put it in quotes",
		"url: a\nheaders: b":                "2:10 /headers headers must be a mapping of names and values",
		"url: a\nurll: b":                   `2:1 /urll unknown field "urll". Did you mean url?`,
		"url: '${LATER}'\nname: x\ntype: y": "",
	} {
		doc, err := ReadSettings("x.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		doc.Getenv = func(name string) string { return environment[name] }
		r := doc.Open()
		r.Know("name", "type")
		var s settings
		ok := r.Read(&s)
		r.Unknown()
		var told []string
		for _, f := range r.Fields() {
			told = append(told, strings.TrimPrefix(f.Place.String(), "x.yaml:")+" "+f.Pointer+" "+f.Message)
		}
		if got := strings.Join(told, "\n"); got != want || r.OK() != (want == "") || want == "" && !ok {
			t.Errorf("%s\nis told %q, want %q", text, got, want)
		}
		if want != "" {
			continue
		}
		if s.URL != (Secret{Written: "${LATER}", Value: "${KEY}", Pointer: "/url"}) || s.Timeout != 30*time.Second || s.MaxBody != 4<<20 || s.Port != 587 || s.First != 1 || !s.Track || s.Inner.Mode != "append" {
			t.Errorf("it is read as %+v", s)
		}
		if diff := cmp.Diff([]redact.Secret{{Name: "LATER", Value: "${KEY}"}}, r.Secrets()); diff != "" {
			t.Error(diff)
		}
	}
}

// What was written counts, also where it is the zero of its type.
func TestDefaultsAreForWhatIsMissing(t *testing.T) {
	doc, err := ReadSettings("x.yaml", []byte("url: a\nfirst: 0\ntrack: false\n"))
	if err != nil {
		t.Fatal(err)
	}
	var s settings
	if faults := doc.Decode(&s); faults != nil || s.First != 0 || s.Track {
		t.Errorf("read as %+v with %v", s, faults)
	}
	filled := settings{Port: 25}
	Fill(&filled)
	if filled.First != 0 || filled.Port != 25 || filled.Timeout != 30*time.Second || filled.Inner.Mode != "append" {
		t.Errorf("filled as %+v", filled)
	}
}

func TestFaultsInNamesAreAtTheirNames(t *testing.T) {
	doc, err := ReadSettings("x.yaml", []byte("headers:\n  A B: c\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := doc.Open()
	r.AddName("/headers/A B", "no name")
	r.AddName("/other", "not there")
	if got := r.Fields(); len(got) != 2 || got[0].Line != 1 || got[1].Place != (pawl.Place{File: "x.yaml", Line: 2, Column: 3}) {
		t.Errorf("told %v", got)
	}
}

func TestFoldersAreReadInOrder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yml": "kind: two\nkey: ${KEY}\n", "a.yaml": "kind: one\n---\n- list\n---\nkind: other\n", ".c.yaml": "kind: [", "d.txt": "kind: [",
		"large.yaml": "#" + strings.Repeat("x", LargestFile),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600); err != nil { // hangs if it is opened
		t.Fatal(err)
	}
	documents, faults := ReadFolder(dir, "things", func(string) string { return "value" })
	var kinds []string
	for _, doc := range documents {
		kinds = append(kinds, doc.Kind)
	}
	if diff := cmp.Diff([]string{"one", "other", "two"}, kinds); diff != "" {
		t.Error(diff)
	}
	var two struct {
		Key Secret `json:"key"`
	}
	if faults := documents[2].Decode(&two); faults != nil || two.Key.Value != "value" {
		t.Errorf("the secret is %q, %v", two.Key.Value, faults)
	}
	if len(faults) != 2 || faults[0].Line != 3 || !strings.Contains(faults[1].String(), "large.yaml: the file cannot be read: it has more than the 262144 bytes allowed") {
		t.Errorf("the faults are %v", faults)
	}
	if _, faults := ReadFolder(filepath.Join(dir, "nowhere"), "things", nil); len(faults) != 1 || !strings.Contains(faults[0].String(), "the folder of things cannot be read") {
		t.Errorf("no folder: %v", faults)
	}
}
