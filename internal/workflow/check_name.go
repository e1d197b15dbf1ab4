package workflow

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostName bounds every name, in characters.
const mostName = 100

const (
	workflowNameHint = "a workflow's name has letters, digits, '.', '_' and '-', and begins with a letter or a digit"
	nameHint         = "a name has up to 100 printable characters, without spaces and '#'"
)

// workflowName checks the name of the workflow, which is part of addresses.
func (c *checker) workflowName(root object) string {
	v := root.get("name")
	name, ok := v.text()
	switch {
	case !root.has("name"):
		c.fault(nil, `add name: "my-workflow"`, "the workflow has no name")
	case !ok:
		c.fault([]string{"name"}, `write name: "my-workflow"`, "name must be a string, not %s", v.kind())
	case name == "":
		c.fault([]string{"name"}, workflowNameHint, "name is empty")
	case utf8.RuneCountInString(name) > mostName:
		c.fault([]string{"name"}, "", "name has %d characters; at most %d are allowed", utf8.RuneCountInString(name), mostName)
	case strings.ContainsFunc(name, notInWorkflowName):
		at := strings.IndexFunc(name, notInWorkflowName)
		bad, _ := utf8.DecodeRuneInString(name[at:])
		c.fault([]string{"name"}, workflowNameHint, "name %s has the character %q", quoted(name), bad)
	case strings.ContainsRune("._-", rune(name[0])):
		c.fault([]string{"name"}, workflowNameHint, "name %s begins with %q", quoted(name), name[0])
	}
	return name
}

func notInWorkflowName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("._-", r)
}

// nameProblem says what is wrong with the name of a handler, topic or label,
// or nothing.
func nameProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case utf8.RuneCountInString(name) > mostName:
		return fmt.Sprintf("has more than %d characters", mostName)
	case strings.ContainsFunc(name, unicode.IsSpace):
		return "has a space"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has a character that cannot be printed"
	case strings.Contains(name, "#"):
		return "has the character '#'"
	}
	return ""
}

// labels reads the labels, by which people select workflows.
func (c *checker) labels(root object) map[string]string {
	if !root.has("labels") {
		return nil
	}
	o, ok := root.get("labels").object()
	if !ok {
		c.fault([]string{"labels"}, `write labels: { team: "data" }`, "labels must be an object, not %s", root.get("labels").kind())
		return nil
	}
	if len(o.names) > maxLabels {
		c.fault([]string{"labels"}, "", "the workflow has %d labels; at most %d are allowed", len(o.names), maxLabels)
		return nil
	}
	var labels map[string]string // stays nil without labels, as JSON reads it
	if len(o.names) > 0 {
		labels = map[string]string{}
	}
	for _, name := range o.names {
		labels[name] = c.label(name, o.get(name))
	}
	return labels
}

const mostLabel = 200 // characters of a label's value

func (c *checker) label(name string, v value) string {
	path := []string{"labels", name}
	who := "label " + quoted(name) + ": "
	text, ok := v.text()
	switch problem := nameProblem(name); {
	case problem != "":
		c.fault(path, nameHint, "%sits name %s", who, problem)
	case strings.ContainsAny(name, "=,"):
		c.fault(path, "", "%sits name has the character '=' or ','", who)
	case !ok:
		c.fault(path, "", "%sits value must be a string, not %s", who, v.kind())
	case utf8.RuneCountInString(text) > mostLabel:
		c.fault(path, "", "%sits value has more than %d characters", who, mostLabel)
	case strings.ContainsFunc(text, unicode.IsControl):
		c.fault(path, "", "%sits value has a control character", who)
	}
	return text
}
