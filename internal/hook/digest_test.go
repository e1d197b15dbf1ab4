package hook

import (
	"net/http"
	"testing"

	"github.com/pawlrun/pawl/internal/store/hookstore"
)

// Deliveries without an id are told apart by when they were signed only where that
// is signed: elsewhere anybody could make one delivery many.
func TestOnlyASignedTimeTellsDeliveriesApart(t *testing.T) {
	digests := func(scheme string) map[string]bool {
		var to target
		to.definition.Verify.Scheme = scheme
		out := map[string]bool{}
		for _, at := range []string{"1", "2"} {
			out[to.digest(http.Header{"X-Slack-Request-Timestamp": {at}}, []byte(opened))] = true
		}
		return out
	}
	if n := len(digests("slack")); n != 2 {
		t.Errorf("with a signed time there are %d", n)
	}
	if n := len(digests("github")); n != 1 {
		t.Errorf("without one there are %d", n)
	}
}

// Whether a hook takes deliveries is told of the version that is asked about, and
// of one that this process has not seen.
func TestAnIssueIsOfTheVersionAskedAbout(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		known := k.s.inMemory("github").Hook
		if why := k.s.Issue(known); why != "" {
			t.Errorf("it takes deliveries, and is said not to: %q", why)
		}
		delete(k.env, "GITHUB_SECRET")
		if why := k.s.Issue(known); why != "" {
			t.Errorf("what is in memory is judged anew: %q", why)
		}
		next, other := known, known
		next.Version, other.Name = known.Version+"x", "other"
		for what, h := range map[string]hookstore.Hook{"another version": next, "a hook that is not known": other} {
			if k.s.Issue(h) == "" {
				t.Errorf("%s has no secret, and nothing is said", what)
			}
		}
	})
}
