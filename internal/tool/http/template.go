package httptool

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const keyPlaceholder = "idempotencyKey"

// template is a path with placeholders: {idempotencyKey}, and {args.body.id}
// for what is in the arguments of the call.
type template struct {
	parts []part
}

// part is either a text or a placeholder.
type part struct {
	text string
	name []string // of a placeholder: its words
	path bool     // the path of the call, which the template begins with
}

// parseTemplate reads a template; fault is what is wrong with it, or empty.
func parseTemplate(text string) (t template, fault string) {
	name := regexp.MustCompile(`^args(\.[A-Za-z0-9_-]+)+$`)
	for rest := text; rest != ""; {
		before, after, opened := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return t, "there is a } without a {"
		}
		t.parts = append(t.parts, part{text: before})
		if !opened {
			break
		}
		inner, tail, closed := strings.Cut(after, "}")
		switch {
		case !closed:
			return t, "there is a { without a }"
		case inner != keyPlaceholder && !name.MatchString(inner):
			return t, "unknown placeholder " + pawl.Quote("{"+inner+"}") + ". " +
				pawl.Suggest(inner, []string{keyPlaceholder}, "The placeholders are {"+keyPlaceholder+"}, and arguments such as {args.body.id}.")
		}
		t.parts = append(t.parts, part{name: strings.Split(inner, "."), path: inner == "args.path" && rest == text && before == ""})
		rest = tail
	}
	return t, ""
}

// fill puts values into the placeholders, as they are.
func (t template) fill(value func(placeholder part) string) string {
	var out strings.Builder
	for _, p := range t.parts {
		out.WriteString(p.text)
		if p.name != nil {
			out.WriteString(value(p))
		}
	}
	return out.String()
}

// expand makes the path for a call. Values are escaped; only the path of the
// call itself, if the template begins with it, stays a path. A value that is
// missing is the fault of the call.
func (t template) expand(key string, args json.RawMessage) (string, error) {
	var fault error
	path := t.fill(func(p part) string {
		value := key
		if len(p.name) > 1 {
			raw, _ := dig(args, p.name[1:])
			value, _ = scalar(raw)
		}
		if p.path {
			value, _, _ = strings.Cut(value, "?")
		}
		if value == "" {
			fault = connector.BadArguments("It is needed to check the outcome of the call later.", "there is no text or number for %s", strings.Join(p.name, "."))
		}
		if p.path {
			return value
		}
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	})
	return path, fault
}
