package repair

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/visible"
)

// Error is a question that gave no proposal. Its text is safe to show.
type Error struct {
	// Class is transient when asking again later may help, auth when the key
	// is not accepted, and else internal.
	Class pawl.Class
	Msg   string
	// RetryAfter is what the server asks to wait, or 0.
	RetryAfter time.Duration
	// Rejected is true when an answer came and is no proposal. It was paid
	// for, so it counts as an attempt.
	Rejected bool
	// Err is why the caller's context ended, else nil.
	Err error
}

// Error says what went wrong.
func (e *Error) Error() string { return e.Msg }

// Unwrap returns the reason of the caller's context.
func (e *Error) Unwrap() error { return e.Err }

func rejected(format string, args ...any) *Error {
	return &Error{Class: pawl.ClassInternal, Msg: fmt.Sprintf(format, args...), Rejected: true}
}

func internal(format string, args ...any) *Error {
	return &Error{Class: pawl.ClassInternal, Msg: fmt.Sprintf(format, args...)}
}

// cancelled is a question that the caller gave up; cause says why.
func cancelled(cause error) *Error {
	return &Error{Class: pawl.ClassTransient, Msg: "the question was given up", Err: cause}
}

// classOf folds the classes of calls into those of Error: what a script would
// be blamed for is a fault of the settings here.
func classOf(class pawl.Class) pawl.Class {
	if class == pawl.ClassTransient || class == pawl.ClassAuth {
		return class
	}
	return pawl.ClassInternal
}

// callError explains a call that gave no whole answer.
func callError(err error, hide hider) *Error {
	e, ok := errors.AsType[*outbound.Error](err)
	if !ok {
		return internal("the model's server could not be asked")
	}
	// A question changes nothing at the other side, although it is a POST.
	return &Error{Class: classOf(e.Verdict(outbound.Read).Class), Msg: hide.text(e.Error())}
}

// hider keeps secrets out of texts that others wrote.
type hider struct {
	key    string
	values []string // of the environment of a command
}

const (
	shortestSecret = 6 // bytes; anything shorter is found everywhere
	keyPiece       = 8 // bytes; servers like to quote the ends of a key
)

// shownText is how much of a foreign text a message quotes, in runes.
const shownText = 500

// text returns the beginning of s as one line without secrets. A text that
// quotes even a piece of the key is left out.
func (h hider) text(s string) string { return visible.Excerpt(h.clean(s), shownText) }

// tail is text for the end of s.
func (h hider) tail(s string) string {
	s = h.clean(s)
	if r := []rune(s); len(r) > shownText {
		s = "..." + string(r[len(r)-shownText:])
	}
	return visible.Excerpt(s, shownText+len("..."))
}

func (h hider) clean(s string) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "?")
	for _, value := range h.values {
		if len(value) >= shortestSecret {
			s = strings.ReplaceAll(s, value, "***")
		}
	}
	if h.holdsKey(s) {
		return "(a text that quotes the key is not shown)"
	}
	return s
}

func (h hider) holdsKey(s string) bool {
	if h.key != "" && len(h.key) < keyPiece {
		return strings.Contains(s, h.key)
	}
	for start := 0; start+keyPiece <= len(h.key); start++ {
		if strings.Contains(s, h.key[start:start+keyPiece]) {
			return true
		}
	}
	return false
}
