package lane

import (
	"context"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store"
)

// ReasonHalted is why nothing can be started while everything is halted.
const ReasonHalted = "halted"

// RefuseHalted refuses what a person or a program wants to start while everything is
// halted, in the caller's transaction. It looks at the switch itself, and not at
// what this process has heard of it.
func RefuseHalted(ctx context.Context, tx *store.Tx, op string) error {
	h, err := HaltOf(ctx, tx)
	if err != nil || h == nil {
		return err
	}
	text := h.Sentence()
	return Refuse(op, ReasonHalted, "everything"+text[len("Everything"):len(text)-1], "Lift the halt first: "+run.Unhalt)
}

// HaltOf is the halt that is in force; nil if none is.
func HaltOf(ctx context.Context, tx *store.Tx) (*run.Halt, error) {
	h, err := tx.LatestHalt(ctx)
	if err != nil || !h.Active() {
		return nil, err
	}
	return &run.Halt{Since: h.Since, By: h.By, Note: h.Note}, nil
}

// HaltGate is whether things may start.
func HaltGate(there run.Workforce) Gate {
	if there.Halt == nil {
		return Gate{Name: "halt", Open: true, Text: "Nothing is halted."}
	}
	return Gate{Name: "halt", Text: there.Halt.Sentence()}
}

// TellHalt adds that everything was halted at the instant, if it was.
func (a *Around) TellHalt(ctx context.Context, tx *store.Tx) error {
	if a.At.After(tx.Now) {
		return nil
	}
	h, err := tx.HaltAt(ctx, a.At)
	if err != nil || h.ID == 0 {
		return err
	}
	if words := HaltedWords(h); !strings.Contains(a.Text, words) { // a slot may have told it
		a.Text += " " + words
	}
	return nil
}

// HaltedWords says that everything was halted for a time, in a sentence.
func HaltedWords(h store.Halt) string {
	text := "Everything was halted from " + pawl.FormatTime(h.Since)
	if !h.Active() {
		text += " to " + pawl.FormatTime(h.Lifted)
	}
	text += " by " + h.By
	if h.Note != "" {
		text += ": " + strings.TrimSuffix(h.Note, ".")
	}
	return text + "."
}
