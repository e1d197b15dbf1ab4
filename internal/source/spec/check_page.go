package spec

import (
	"strings"

	"github.com/pawlrun/pawl/internal/outbound"
)

// pagination checks how the source gets from page to page.
func (c checker) pagination() {
	var blocks []string
	for _, block := range []string{"offsetPagination", "cursorPagination", "linkPagination"} {
		if c.doc.Has("/" + block) {
			blocks = append(blocks, block)
		}
	}
	if len(blocks) > 1 {
		c.add("/"+blocks[1], "%s exclude each other: keep one of them", strings.Join(blocks, " and "))
	}
	if c.d.OffsetPagination != nil {
		c.offset(*c.d.OffsetPagination)
	}
	if c.d.CursorPagination != nil {
		c.cursor(*c.d.CursorPagination)
	}
	if c.d.LinkPagination != nil {
		c.link(*c.d.LinkPagination)
	}
}

func (c checker) offset(o OffsetPagination) {
	const at = "/offsetPagination"
	switch {
	case o.PageParam == "" && o.OffsetParam == "":
		c.add(at+"/pageParam", "pageParam or offsetParam is missing: the parameter that counts pages or rows")
	case o.PageParam != "" && o.OffsetParam != "":
		c.add(at+"/offsetParam", "pageParam and offsetParam exclude each other: keep one of them")
	}
	c.paramNames(at, map[string]string{"pageParam": o.PageParam, "offsetParam": o.OffsetParam, "limitParam": o.LimitParam})
	c.answerPath(at+"/hasMorePath", o.HasMorePath)
	c.answerPath(at+"/totalPath", o.TotalPath)
}

func (c checker) cursor(p CursorPagination) {
	const at = "/cursorPagination"
	c.paramNames(at, map[string]string{"cursorParam": p.CursorParam, "limitParam": p.LimitParam})
	c.answerPath(at+"/nextCursorPath", p.NextCursorPath)
	if c.doc.Has(at+"/limit") && p.LimitParam == "" {
		c.add(at+"/limit", "limit needs limitParam: the parameter that it is sent in")
	}
}

func (c checker) link(p LinkPagination) {
	const at = "/linkPagination"
	switch {
	case p.Header == "" && p.NextPath == "":
		c.add(at, "header or nextPath is missing: where the link to the next page is, such as {header: Link}")
	case p.Header != "" && p.NextPath != "":
		c.add(at+"/nextPath", "header and nextPath exclude each other: keep one of them")
	case p.Header != "" && !outbound.IsHeaderName(p.Header):
		c.add(at+"/header", "%q is not the name of a header", p.Header)
	}
	c.answerPath(at+"/nextPath", p.NextPath)
}

// incremental checks how the source asks for what is new.
func (c checker) incremental() {
	i := c.d.Incremental
	if i == nil {
		return
	}
	c.paramNames("/incremental", map[string]string{"param": i.Param})
	c.rowPath("/incremental/cursorPath", i.CursorPath)
	c.text("/incremental/initial", i.Initial, longestName)
	if i.Lookback != "" {
		c.interval("/incremental/lookback", i.Lookback)
	}
	if c.d.Write.Mode == Replace {
		c.add("/incremental", "incremental fetches only what is new, and mode replace drops what was not fetched: keep one of them")
	}
}

// answerPath checks a path in an answer, if there is one.
func (c checker) answerPath(pointer, path string) {
	if path != "" && c.needsJSON(pointer) {
		c.path(pointer, path)
	}
}

// paramNames checks the names of parameters, of which any may be missing.
func (c checker) paramNames(at string, names map[string]string) {
	for field, name := range names {
		if !printable(name) {
			c.add(at+"/"+field, "%s is not the name of a parameter", field)
		}
	}
}
