package web

// comparison is a list of what was put in force, and one of it against the one
// before.
type comparison struct {
	Versions []versionAnswer
	Pager    pager

	Shown   *versionAnswer // that was picked
	Against *versionAnswer // what it is compared with; nil for the first one
	Diff    []diffLine
	Same    bool
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
