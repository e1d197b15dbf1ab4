package fetch

import (
	"net/url"
	"strconv"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// step is what a page says about the way on.
type step struct {
	next Position
	last bool
}

// advance decides where to go on after a page of rows at from.
func advance(ask Ask, from Position, a *answer, asked *signals, rows *mapper) (step, error) {
	next := Position{Page: from.Page + 1, Offset: from.Offset + int64(rows.read), Size: from.Size, Short: from.Short, Seen: from.Seen}
	if from.Page == 0 {
		next.Size = rows.read
	}
	if err := guardContent(from, &next, a, rows); err != nil {
		if from.Short { // it knows no pages, and gave all there is at first
			return step{next: next, last: true}, nil
		}
		return step{}, err
	}
	d := ask.Definition
	switch {
	case d.OffsetPagination != nil:
		return byOffset(*d.OffsetPagination, next, a, asked, rows.read)
	case d.CursorPagination != nil:
		return byCursor(*d.CursorPagination, from, next, a, asked, rows.read)
	case d.LinkPagination != nil:
		return byLink(*d.LinkPagination, from, next, a, asked, rows.read)
	}
	return step{next: next, last: true}, nil
}

// guardContent refuses a page that came before.
func guardContent(from Position, next *Position, a *answer, rows *mapper) error {
	if rows.read == 0 {
		return nil
	}
	content := "p" + rows.fingerprint()
	if from.saw(content) {
		e := faultf(CodeLoop, "%s: page %d is the same as one before it", a.req.URL.Host, next.Page)
		e.Hint = "the other side may not know the parameters of the pagination; check their names"
		return e
	}
	next.remember(content)
	return nil
}

// byOffset goes on while the answer says that there is more, or while there are
// fewer rows than it says in all, or else until a page has fewer rows than the
// first one. A first page that is not full may be the last, or as large as the
// server makes them: one more call tells.
func byOffset(p spec.OffsetPagination, next Position, a *answer, asked *signals, read int) (step, error) {
	counts := p.OffsetParam != "" || countsRows(p.PageParam)
	if more := asked.at(p.HasMorePath); more != nil && more[0] != 'n' {
		going := isSomething(more) && string(more) != `"false"` && string(more) != `"0"`
		if going && read == 0 && counts {
			return step{}, faultf(CodeLoop, "%s: page %d is empty, and the answer says that there is more", a.req.URL.Host, next.Page)
		}
		return step{next: next, last: !going}, nil
	}
	if read == 0 {
		return step{next: next, last: true}, nil
	}
	if text, ok := scalar(asked.at(p.TotalPath)); ok && text != "" {
		total, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return step{}, faultf(CodeBadPath, "%s: what is at totalPath is not a number", a.req.URL.Host)
		}
		return step{next: next, last: float64(next.Offset) >= total}, nil
	}
	if next.Page == 1 {
		next.Short = read < p.Limit
		return step{next: next}, nil
	}
	return step{next: next, last: read < next.Size}, nil
}

// byCursor goes on while there is a cursor.
func byCursor(p spec.CursorPagination, from, next Position, a *answer, asked *signals, read int) (step, error) {
	cursor, ok := scalar(asked.at(p.NextCursorPath))
	if !ok {
		return step{}, faultf(CodeBadPath, "%s: what is at nextCursorPath is neither text nor a number", a.req.URL.Host)
	}
	if cursor == "" {
		return step{next: next, last: true}, nil
	}
	next.Cursor = cursor
	return once(from, next, digest('c', cursor), a, read)
}

// byLink goes on while there is a link.
func byLink(p spec.LinkPagination, from, next Position, a *answer, asked *signals, read int) (step, error) {
	text := linkFrom(a.resp.Header, p.Header)
	if p.NextPath != "" {
		var ok bool
		if text, ok = scalar(asked.at(p.NextPath)); !ok {
			return step{}, faultf(CodeBadPath, "%s: what is at nextPath is not text", a.req.URL.Host)
		}
	}
	if text == "" {
		return step{next: next, last: true}, nil
	}
	link, err := url.Parse(text)
	if err != nil {
		return step{}, faultf(CodeBadPath, "%s: the link to the next page is not a URL", a.req.URL.Host)
	}
	home, err := keepHome(a.plain, a.resp.Request.URL.ResolveReference(link))
	if err != nil {
		return step{}, err
	}
	next.NextURL = withoutCredentials(home, a.plain, a.req.URL).String()
	if next.NextURL == a.plain.String() {
		return step{}, looped(a, next.Page)
	}
	return once(from, next, digest('u', next.NextURL), a, read)
}

// once refuses a cursor or link that was followed before. At the end of the
// rows some servers repeat the last cursor for ever; an empty page that does is
// the end.
func once(from, next Position, hash string, a *answer, read int) (step, error) {
	if !from.saw(hash) {
		next.remember(hash)
		return step{next: next}, nil
	}
	if read == 0 {
		return step{next: next, last: true}, nil
	}
	return step{}, looped(a, next.Page)
}

func looped(a *answer, page int) *Error {
	return faultf(CodeLoop, "%s: page %d leads back to a page before it", a.req.URL.Host, page)
}
