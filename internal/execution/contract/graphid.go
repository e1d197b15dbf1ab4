package contract

import (
	"fmt"
	"regexp"
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
	case !graphPart(provider, `^[A-Za-z][A-Za-z0-9_-]*$`, longestProvider):
		return "", "", badGraphID(id, "the provider begins with a letter and has letters, digits, _ and - only")
	case !graphPart(name, `^[A-Za-z0-9][A-Za-z0-9_.-]*$`, longestGraphName):
		return "", "", badGraphID(id, "the name begins with a letter or digit and has letters, digits, _, - and . only")
	}
	return provider, name, nil
}

func graphPart(text, pattern string, longest int) bool {
	return len(text) <= longest && regexp.MustCompile(pattern).MatchString(text)
}

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
