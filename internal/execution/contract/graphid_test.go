package contract

import (
	"errors"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
)

// X-61, surface: a graph id is provider:name, and no graph is called *.
func TestParseGraphID(t *testing.T) {
	for id, want := range map[string][2]string{
		"langgraph:poet": {"langgraph", "poet"}, "http:a.b-c_9": {"http", "a.b-c_9"},
		"langgraph:fe096781-5601-53d2-b2f6-0d3403f7e9ca": {"langgraph", "fe096781-5601-53d2-b2f6-0d3403f7e9ca"},
		"a:" + strings.Repeat("n", longestGraphName):     {"a", strings.Repeat("n", longestGraphName)},
	} {
		if provider, name, err := ParseGraphID(id); err != nil || provider != want[0] || name != want[1] {
			t.Errorf("%s: %q %q %v", id, provider, name, err)
		}
	}
	for _, id := range []string{
		"", ":", "poet", "langgraph:", ":poet", "langgraph:*", "*:poet", "*", "a:b:c", "a:b/c", "a:b c", "a:b\n", "9a:b", "a:.b", "ä:b", "a:ä",
		strings.Repeat("p", longestProvider+1) + ":n", "a:" + strings.Repeat("n", longestGraphName+1),
	} {
		if _, _, err := ParseGraphID(id); !errors.Is(err, pawl.ErrInvalid) || len(err.Error()) > 300 {
			t.Errorf("%q: %v", id, err)
		}
	}
}
