package api

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawlrun/pawl/client"
)

// PageInput is how every list is asked for.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
	Cursor string `query:"cursor" maxLength:"200" doc:"The nextCursor of the page before; absent is the first page."`
}

// pageOf makes a page; next is where to go on, empty at the end.
func pageOf[T any](items []T, kind, next string) client.Page[T] {
	p := client.Page[T]{Items: items}
	if p.Items == nil {
		p.Items = []T{}
	}
	if next != "" {
		p.NextCursor = client.NullString(base64.RawURLEncoding.EncodeToString([]byte(kind + ":" + next)))
	}
	return p
}

// place reads a cursor of this kind of list; empty is the beginning.
func (in PageInput) place(kind string) (string, error) {
	if in.Cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(in.Cursor)
	place, ok := strings.CutPrefix(string(raw), kind+":")
	if err != nil || !ok || place == "" || !utf8.ValidString(place) {
		return "", badCursor()
	}
	return place, nil
}

// placeInTime reads a cursor of a list that goes by time and then by id; an
// empty id is the beginning.
func (in PageInput) placeInTime(kind string) (at time.Time, id string, err error) {
	place, err := in.place(kind)
	if err != nil || place == "" {
		return at, "", err
	}
	millis, id, _ := strings.Cut(place, ":")
	n, err := strconv.ParseInt(millis, 10, 64)
	if err != nil || textFault(id, maxName) != "" {
		return at, "", badCursor()
	}
	return time.UnixMilli(n).UTC(), id, nil
}

// timeCursor is where a list that goes by time goes on.
func timeCursor(at time.Time, id string) string {
	return strconv.FormatInt(at.UnixMilli(), 10) + ":" + id
}

// placeInOrder reads a cursor of a list that goes by number; zero is the
// beginning.
func (in PageInput) placeInOrder(kind string) (int64, error) {
	place, err := in.place(kind)
	if err != nil || place == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(place, 10, 64)
	if err != nil || n <= 0 {
		return 0, badCursor()
	}
	return n, nil
}

// orderCursor is where a list that goes by number goes on; zero is the end.
func orderCursor(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// tellAll tells every thing of a list.
func mapAll[S, T any](list []S, tell func(S) T) []T {
	items := make([]T, len(list))
	for i := range list {
		items[i] = tell(list[i])
	}
	return items
}

// cutPage makes a page of what was read with one more than the limit.
func cutPage[S, T any](list []S, limit int, kind string, cursor func(S) string, tell func(S) T) client.Page[T] {
	next := ""
	if len(list) > limit {
		list = list[:limit]
		next = cursor(list[limit-1])
	}
	return pageOf(mapAll(list, tell), kind, next)
}

func badCursor() error {
	return invalid("Use the nextCursor of the page before, unchanged, or leave it out.", client.Fault{Pointer: "/cursor", Message: "is not a cursor of this list"})
}

// textFault says what is wrong with a name that a user gave, or is empty. Names
// are shown in tables and logs, so they have nothing that cannot be seen.
func textFault(s string, most int) string {
	switch {
	case s == "" || utf8.RuneCountInString(s) > most:
		return fmt.Sprintf("must have 1 to %d characters", most)
	case !utf8.ValidString(s):
		return "must be UTF-8"
	case strings.TrimSpace(s) != s:
		return "must not begin or end with a space"
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "must have printable characters only"
	}
	return ""
}
