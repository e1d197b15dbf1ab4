package source

import "testing"

// What a definition says about keeping is noted with its lane, and goes with it.
func TestWhatASourceKeepsIsNoted(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, c := range []struct{ extra, want string }{
			{"keep: {runs: 1w, rejects: forever}\n", "runs=7d,rejects=forever"},
			{"keep: {runs: 2d}\n", "runs=2d"},
			{"", ""},
		} {
			k.apply(definition("items", "/items", c.extra))
			if got := k.column(`select keep from lanes where lane = 'items'`); len(got) != 1 || got[0] != c.want {
				t.Errorf("%q: %q", c.extra, got)
			}
		}
	})
}
