package run

import (
	"strings"
	"time"

	"github.com/pawlrun/pawl"
)

// Workforce is who there is to run things, among all processes on a database, and
// whether they may. The zero value is that somebody is there, and may.
type Workforce struct {
	Missing bool      // nobody is there
	Seen    time.Time // when somebody was there last; zero if that is not known
	Halt    *Halt     // nil: things may start
}

// Halt is that somebody stopped all starts.
type Halt struct {
	Since time.Time
	By    string
	Note  string // may be empty
}

// Sentence says that nothing starts, and why.
func (h *Halt) Sentence() string {
	text := "Everything has been halted since " + pawl.FormatTime(h.Since) + " by " + h.By
	if h.Note != "" {
		text += ": " + strings.TrimSuffix(h.Note, ".")
	}
	return text + "."
}

// Unhalt is the command that lifts a halt.
const Unhalt = "pawl unhalt"

// NextWords is what comes next while things may not start.
func (h *Halt) NextWords() string { return "It starts nothing until the halt is lifted." }

// Sentence says who is there.
func (w Workforce) Sentence() string {
	switch {
	case !w.Missing:
		return "A worker is running."
	case w.Seen.IsZero():
		return "No worker is running, and nothing runs until one starts."
	}
	return "No worker has been seen since " + pawl.FormatTime(w.Seen) + ", and nothing runs until one starts."
}

// Over says the word and the issue of a lane in the light of who is there: with
// nobody, whatever is meant to run needs a person, unless it needs one for
// something else already. While everything is halted, whatever does not run at
// the moment is.
func (w Workforce) Over(word State, issue Issue) (State, Issue) {
	if w.Halt != nil && (word == Idle || word == Running && issue != IssueNone && issue != IssueReconciling) {
		return Stopped, IssueHalted
	}
	if !w.Missing || word == Stopped || word == NeedsAttention {
		return word, issue
	}
	return NeedsAttention, IssueNoWorker
}

// StartWorker is the command that brings a worker.
const StartWorker = "pawl serve"

// Command is a command line of this program, with its words quoted for a shell
// where they have to be.
func Command(words ...string) string {
	out := []string{"pawl"}
	for _, word := range words {
		out = append(out, shellWord(word))
	}
	return strings.Join(out, " ")
}

func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
