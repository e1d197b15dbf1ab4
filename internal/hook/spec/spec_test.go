package spec

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
)

// The example of the documentation.
const github = `kind: hook
name: github
verify: {scheme: github, secret: "${GITHUB_SECRET}"}     # standard | github | stripe | slack | hmac | token
deliveryId: header:X-GitHub-Delivery                     # or body:id; each scheme has its default
when: {header:X-GitHub-Event: issues, body:action: opened}
publish: {workflow: triage, topic: issue.opened, payload: body}     # or job: {...}, or run: {schedule: name}
maxBytes: 1MiB
`

func one(t *testing.T, text string) Definition {
	t.Helper()
	list, err := Parse("h.yaml", []byte(text))
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	return list[0]
}

func TestADefinitionIsRead(t *testing.T) {
	d := one(t, github)
	if d.Name != "github" || d.MaxBytes != 1<<20 || d.Publish.Payload != "body" || d.When["header:X-GitHub-Event"][0] != "issues" || d.When["body:action"][0] != "opened" {
		t.Errorf("it is %+v", d)
	}
	if d.Effect() != "publishes issue.opened to the workflow triage" {
		t.Error(d.Effect())
	}
	// The stored form means the same, and keeps its version.
	var again Definition
	if err := json.Unmarshal(d.JSON(), &again); err != nil || string(again.JSON()) != string(d.JSON()) || again.Version() != d.Version() {
		t.Errorf("stored: %s and %s, %v", d.JSON(), again.JSON(), err)
	}
	fromJSON, err := FromJSON(d.JSON())
	if err != nil || fromJSON.Version() != d.Version() {
		t.Errorf("by the API: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	for scheme, want := range map[string]string{"standard": "Webhook-Id", "github": "X-Github-Delivery", "stripe": "id", "slack": "event_id", "hmac": "", "token": ""} {
		d := one(t, "kind: hook\nname: h\nverify: {scheme: "+scheme+", secret: \"${S}\"}\nrun: {schedule: nightly}\n")
		at, _ := d.ID()
		if got := at.Header + strings.Join(at.Path, "."); got != want {
			t.Errorf("the id of %s is in %q", scheme, got)
		}
		if d.MaxBytes != 1<<20 || d.Settings().Tolerance != 5*time.Minute {
			t.Errorf("%s has %d and %s", scheme, d.MaxBytes, d.Settings().Tolerance)
		}
	}
}

func TestFaultsHaveTheirPlace(t *testing.T) {
	const good = "kind: hook\nname: h\nverify: {scheme: hmac, secret: \"${S}\"}\njob: {task: log}\n"
	one(t, good)
	for text, want := range map[string]string{
		"kind: hook\nname: H!\nverify: {scheme: github, secret: \"${S}\"}\njob: {task: log}\n":          "h.yaml:2:7",
		"kind: hook\nname: h\njob: {task: log}\n":                                                       "verify is missing",
		"kind: hook\nname: h\nverify: {scheme: gitlab, secret: x}\njob: {task: log}\n":                  "gitlab",
		"kind: hook\nname: h\nverify: {scheme: github}\njob: {task: log}\n":                             "would believe everybody",
		"kind: hook\nname: h\nverify: {scheme: github, secret: \" \"}\njob: {task: log}\n":              "a secret is empty",
		"kind: hook\nname: h\nverify: {scheme: github, secret: []}\njob: {task: log}\n":                 "the list is empty",
		"kind: hook\nname: h\nverify: {scheme: github, secret: \"${S}\"}\n":                             "publish, job or run",
		good + "run: {schedule: x}\n":                                                                   "cannot go together",
		good + "deliveryId: id\n":                                                                       "h.yaml:5:13",
		good + "deliveryId: body\n":                                                                     "all of the body",
		good + "deliveryId: header:Authorization\n":                                                     "is a secret",
		good + "when: {header:X-Signature: x}\n":                                                        "is a secret",
		good + "when: {cookie:x: y}\n":                                                                  "header:NAME or body:PATH",
		good + "when: {body:a..b: y}\n":                                                                 "header:NAME or body:PATH",
		good + "when: {body:a: {b: c}}\n":                                                               "must be a text",
		good + "maxBytes: 1GiB\n":                                                                       "maxBytes must be",
		strings.Replace(good, "task: log", "task: log, priority: 2", 1):                                 "priority must be",
		good + "color: red\n":                                                                           "color",
		strings.Replace(good, "hmac", "github, header: X", 1):                                           "header is for the scheme hmac and token",
		strings.Replace(good, "hmac", "github, tolerance: 5m", 1):                                       "signs no time",
		strings.Replace(good, "hmac", "stripe, tolerance: 3d", 1):                                       "is not a length of time",
		strings.Replace(good, "hmac", "hmac, header: \"a b\"", 1):                                       "not the name of a header",
		strings.Replace(good, "{task: log}", "{task: log, payload: everything}", 1):                     "body:PATH or delivery",
		strings.Replace(good, "job: {task: log}", "publish: {workflow: w, topic: t, payload: head}", 1): "body:PATH or delivery",
	} {
		_, err := Parse("h.yaml", []byte(text))
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok {
			t.Errorf("%s is taken", text)
			continue
		}
		var all []string
		for _, f := range e.Fields {
			all = append(all, f.String())
		}
		if told := strings.Join(all, "\n"); !strings.Contains(told, want) {
			t.Errorf("%s: the faults are\n%s\nwithout %q", text, told, want)
		}
	}
}

// What is applied must name its secrets; what is in a served folder may have them.
func TestSecretsAreNeverStored(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "key"), []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(name string) string { return map[string]string{"A": "aa", "B": "bb"}[name] }
	for written, want := range map[string]string{`"${A}"`: "aa", `["${A}", "${B}"]`: "aa bb", "plain": "plain", "file:key": "from-a-file"} {
		documents, err := definition.Read(filepath.Join(folder, "h.yaml"), []byte("kind: hook\nname: h\nverify: {scheme: github, secret: "+written+"}\njob: {task: log}\n"))
		if err != nil {
			t.Fatal(err)
		}
		d, faults := FromDocument(documents[0])
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		found, faults := d.ResolveFile(documents[0], env)
		if got := strings.Join(found, " "); got != want || len(faults) > 0 {
			t.Errorf("%s is %q, %v", written, got, faults)
		}
		for _, secret := range found {
			if strings.Contains(string(d.JSON()), secret) {
				t.Errorf("%s is stored as %s", written, d.JSON())
			}
		}
		_, faults = d.Resolve(env)
		if reference := strings.Contains(written, "${"); reference != (len(faults) == 0) {
			t.Errorf("by the API %s: %v", written, faults)
		}
		for _, f := range faults {
			if strings.Contains(f.Message, "plain") {
				t.Errorf("the fault tells the secret: %s", f.Message)
			}
		}
	}
	d := one(t, "kind: hook\nname: h\nverify: {scheme: standard, secret: \"${A}${B}\"}\njob: {task: log}\n")
	if _, faults := d.Resolve(env); len(faults) == 0 {
		t.Error("the API takes what is more than a reference")
	}
	d = one(t, "kind: hook\nname: h\nverify: {scheme: standard, secret: \"${NONE}\"}\njob: {task: log}\n")
	if _, faults := d.Resolve(env); len(faults) == 0 || !strings.Contains(faults[0].Message, "NONE is not set") {
		t.Errorf("a variable that is not set: %v", faults)
	}
}
