package contract

import (
	"fmt"
	"strings"

	"github.com/pawlrun/pawl"
)

// Limits of the parts of a graph id, in characters.
const (
	longestProvider  = 64
	longestGraphName = 128
)

// ParseGraphID cuts a graph id, provider:name, in two. The name has no colon,
// so that the form {graphId}:run of a URL means one thing, and no *, so that
// no graph can be called like the scope of all graphs. Its error is
// pawl.ErrInvalid.
func ParseGraphID(id string) (provider, name string, err error) {
	provider, name, _ = strings.Cut(id, ":")
	switch {
	case !graphPart(provider, longestProvider, "_-") || !letter(provider[0]):
		return "", "", badGraphID(id, "the provider begins with a letter and has letters, digits, _ and - only")
	case !graphPart(name, longestGraphName, "_.-") || strings.IndexByte("_.-", name[0]) >= 0:
		return "", "", badGraphID(id, "the name begins with a letter or digit and has letters, digits, _, - and . only")
	}
	return provider, name, nil
}

// graphPart reports whether a text has letters, digits and these marks only.
func graphPart(text string, longest int, marks string) bool {
	for i := range len(text) {
		if c := text[i]; !letter(c) && (c < '0' || c > '9') && strings.IndexByte(marks, c) < 0 {
			return false
		}
	}
	return text != "" && len(text) <= longest
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func badGraphID(id, why string) error {
	const shown = 80 // bytes
	if len(id) > shown {
		id = strings.ToValidUTF8(id[:shown], "") + "..."
	}
	return &pawl.Error{
		Code: pawl.CodeInvalid, Msg: fmt.Sprintf("the graph id %q is not provider:name: %s", id, why),
		Hint: "A graph id looks like langgraph:poet.",
	}
}
