package api

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PageInput is how every list is asked for.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most."`
	Cursor string `query:"cursor" maxLength:"200" doc:"The nextCursor of the page before; absent is the first page."`
}

// Page is how every list is answered.
type Page[T any] struct {
	Items      []T     `json:"items" nullable:"false" doc:"This page, the newest first."`
	NextCursor *string `json:"nextCursor" doc:"The cursor of the next page; null at the end."`
}

// pageOf makes a page; next is where to go on, empty at the end.
func pageOf[T any](items []T, kind, next string) Page[T] {
	p := Page[T]{Items: items}
	if p.Items == nil {
		p.Items = []T{}
	}
	if next != "" {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(kind + ":" + next))
		p.NextCursor = &cursor
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

func badCursor() error {
	return invalid("Use the nextCursor of the page before, unchanged, or leave it out.", Fault{"/cursor", "is not a cursor of this list"})
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
