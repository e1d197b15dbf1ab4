package web

// comparison is a list of what was put in force, and one of it against the one
// before.
type comparison struct {
	Versions any // of client.WorkflowVersion or client.SourceVersion
	Pager    pager

	Shown   *shownVersion // that was picked
	Against *shownVersion // what it is compared with; nil for the first one
	Diff    []diffLine
	Same    bool
}

// shownVersion is a version with its text.
type shownVersion struct {
	Number                    int
	Version, Filename, Script string
}

// compare fills the difference.
func (c *comparison) compare() {
	if c.Shown == nil {
		return
	}
	before := ""
	if c.Against != nil {
		before = c.Against.Script
		c.Same = before == c.Shown.Script
	}
	c.Diff = diff(before, c.Shown.Script)
}
