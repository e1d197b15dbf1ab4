package pawl_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Pages link to what is there: files and folders of this repository, and the
// headings of its own pages.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	found := 0
	for _, name := range repositoryFiles(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, match := range link.FindAllSubmatch(read(t, name), -1) {
			target, anchor, _ := strings.Cut(string(match[1]), "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			found++
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(filepath.FromSlash(file)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, match[1])
				continue
			}
			if anchor != "" && path.Ext(file) == ".md" && !hasHeading(read(t, file), anchor) {
				t.Errorf("%s links to %s; there is no such heading", name, match[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d links", found)
	}
}

// hasHeading reports whether a page has a heading of which this is the anchor:
// small letters, hyphens for spaces, and no other signs.
func hasHeading(page []byte, anchor string) bool {
	signs := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllSubmatch(page, -1) {
		made := strings.ReplaceAll(signs.ReplaceAllString(strings.ToLower(string(heading[1])), ""), " ", "-")
		if made == anchor {
			return true
		}
	}
	return false
}
