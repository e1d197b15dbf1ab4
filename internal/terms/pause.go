package terms

import (
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// PausedWords say until when something is paused, by whom, since when and why: what
// follows "It is" everywhere that a pause is told of. Of a pause about which nothing is
// known they say only that.
func PausedWords(p client.Pause) string {
	if p.Since.IsZero() {
		return "paused"
	}
	text := "paused"
	if !p.Until.IsZero() {
		text += " until " + pawl.FormatTime(p.Until.Time)
	}
	text += ", by " + p.By + " since " + pawl.FormatTime(p.Since.Time)
	if note := string(p.Note); note != "" {
		text += ": " + strings.TrimSuffix(note, ".")
	}
	return text
}

// PausedSentence is PausedWords with what ends the pause.
func PausedSentence(p client.Pause) string {
	if !p.Until.IsZero() {
		return "It is " + PausedWords(p) + ". It then continues by itself."
	}
	return "It is " + PausedWords(p) + "; resume it to continue."
}
