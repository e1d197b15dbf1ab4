package lane

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// MaxPause is the longest time for which a lane can be paused; without an end it is
// paused until somebody resumes it.
const MaxPause = 10 * 366 * 24 * time.Hour

// MaxNote is the length of the longest note, in characters.
const MaxNote = 500

// PauseTerms are what a person says when they pause a lane.
type PauseTerms struct {
	Until time.Time // when it continues by itself; zero: when somebody resumes it
	Note  string    // why, for people
}

// NoteFault is what is wrong with a note; empty if nothing is, or if there is none.
func NoteFault(note string) string {
	switch {
	case !utf8.ValidString(note):
		return "must be UTF-8"
	case utf8.RuneCountInString(note) > MaxNote:
		return "must have at most 500 characters"
	case strings.ContainsFunc(note, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "must be one line of printable characters"
	}
	return ""
}

// check finds what is wrong with the terms, before anything is written.
func (t PauseTerms) check(now time.Time) error {
	var faults []pawl.Field
	switch {
	case t.Until.IsZero():
	case !t.Until.After(now):
		faults = append(faults, pawl.Field{Pointer: "/until", Message: "must be in the future; it is " + pawl.FormatTime(now)})
	case t.Until.Sub(now) > MaxPause:
		faults = append(faults, pawl.Field{Pointer: "/until", Message: "must be within 10 years"})
	}
	if msg := NoteFault(t.Note); msg != "" {
		faults = append(faults, pawl.Field{Pointer: "/note", Message: msg})
	}
	if len(faults) == 0 {
		return nil
	}
	return &pawl.Error{Code: pawl.CodeInvalid, Op: "pause", Msg: "it cannot be paused like that", Fields: faults,
		Hint: "Name a time to come, such as 2h or " + pawl.FormatTime(now.Add(2*time.Hour).Truncate(time.Minute)) + ", or none: then it is paused until you resume it."}
}

// Pause notes in the row of a lane that a person pauses it, and arms its end. What was
// said before is replaced; since when it is paused stays. It reports whether anything
// changed.
func Pause(ctx context.Context, tx *store.Tx, jobs Jobs, known runstore.Lane, t PauseTerms, by string) (bool, error) {
	t.Note = strings.TrimSpace(t.Note)
	if err := t.check(tx.Now); err != nil {
		return false, err
	}
	now := runstore.Pause{At: known.Pause.At, Until: t.Until.Truncate(time.Millisecond), By: personOf(by), Note: t.Note}
	if now.At.IsZero() {
		now.At = tx.Now
	}
	was := known.Pause
	if was.Until.Equal(now.Until) && was.Note == now.Note && !was.At.IsZero() {
		return false, nil
	}
	if err := runstore.In(tx).SetPause(ctx, known.Kind, known.Lane, now); err != nil || now.Until.IsZero() {
		return true, err
	}
	return true, ArmContinue(ctx, tx, jobs, known.Kind, known.Lane, now.Until)
}

// personOf is the name of whoever did something, without the token that they did it by.
func personOf(actor string) string {
	name, _, _ := strings.Cut(actor, " (token ")
	return name
}

// Unpause forgets what was said about a pause that is over.
func Unpause(ctx context.Context, tx *store.Tx, known runstore.Lane) error {
	if known.Pause == (runstore.Pause{}) {
		return nil
	}
	return runstore.In(tx).SetPause(ctx, known.Kind, known.Lane, runstore.Pause{})
}

// AuditPause is the detail of the line that tells of a pause; nil if nothing was said.
func AuditPause(t PauseTerms) any {
	detail := map[string]string{}
	if !t.Until.IsZero() {
		detail["until"] = pawl.FormatTime(t.Until)
	}
	if note := strings.TrimSpace(t.Note); note != "" {
		detail["note"] = note
	}
	if len(detail) == 0 {
		return nil
	}
	return detail
}

// Continued is the actor of what a lane does by itself.
const Continued = "pawl"

// AuditPauseOver is the detail of the line that tells that a pause ended by itself.
func AuditPauseOver(p runstore.Pause) any {
	return map[string]string{"pausedUntil": pawl.FormatTime(p.Until), "pausedBy": p.By}
}

// PauseOf is a pause as it is told to others.
func PauseOf(p runstore.Pause) client.Pause {
	return client.Pause{Since: client.At(p.At), Until: client.At(p.Until), By: p.By, Note: client.NullString(p.Note)}
}

// PausedWords say since when and until when a lane is paused, by whom and why.
func PausedWords(p runstore.Pause) string { return "It is " + terms.PausedWords(PauseOf(p)) + "." }

// PausedSentence is PausedWords with what ends it.
func PausedSentence(p runstore.Pause) string { return terms.PausedSentence(PauseOf(p)) }

// PausedThen is why nothing ran while a lane was paused, until an instant; zero: it is
// paused still.
func PausedThen(p runstore.Pause, until time.Time) string {
	text := "It was paused from " + pawl.FormatTime(p.At)
	if until.IsZero() {
		text = "It is paused since " + pawl.FormatTime(p.At)
	} else {
		text += " to " + pawl.FormatTime(until)
	}
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Note != "" {
		text += ": " + strings.TrimSuffix(p.Note, ".")
	}
	return text + "."
}

// RefusePaused refuses what a person or a program wants to start of a lane that is paused.
func RefusePaused(op string, of Ref, p runstore.Pause) error {
	return Refuse(op, ReasonPaused, fmt.Sprintf("%s %q is %s", of.Kind, of.Name, terms.PausedWords(PauseOf(p))), "Resume it first: "+run.Command("resume", string(of.Kind), of.Name))
}

// ReasonPaused is why nothing can be started of a lane that is paused.
const ReasonPaused = "paused"

// PausedNext is what a paused lane does next.
func PausedNext(p runstore.Pause) string {
	if p.Until.IsZero() {
		return "It does nothing until it is resumed."
	}
	return "It does nothing until its pause is over, at " + pawl.FormatTime(p.Until) + "."
}
