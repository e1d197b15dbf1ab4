package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// reality is what really happened outside, kept apart from everything that Pawl
// knows: who asks whether something was done twice looks here.
type reality struct {
	marks map[string][]mark // by event, in order

	// misled are the keys of calls about which somebody said the opposite of
	// what had happened.
	misled map[string]bool
}

// mark is one thing in the story of an event outside.
type mark string

const (
	effect mark = "effect"
	// denial is a lie on somebody's word: a person says of a call that it did not
	// happen, or the desk answers the call itself with a refusal. That the desk
	// cannot find an order is no such word and excuses nothing.
	denial mark = "denial"
)

func newReality() reality { return reality{marks: map[string][]mark{}, misled: map[string]bool{}} }

func (w *reality) happened(c tool.Call) {
	for _, id := range idsIn(c.Args) {
		w.marks[id] = append(w.marks[id], effect)
	}
}

// deny notes that somebody says on his word that a call did not happen, though
// it did.
func (w *reality) deny(key string, args json.RawMessage) {
	w.misled[key] = true
	for _, id := range idsIn(args) {
		w.marks[id] = append(w.marks[id], denial)
	}
}

// repeated is an event with two effects between which nobody denied the first
// on his word, or empty. What remains outside of these histories cannot be
// helped: an other end that ignores keys and works on a call for longer than
// absentAfter (see TestWhatNobodyCanHelp).
func (w *reality) repeated() string {
	for id, marks := range w.marks {
		for i := range marks[1:] {
			if marks[i] == effect && marks[i+1] == effect {
				return id
			}
		}
	}
	return ""
}

// idsIn are the events that a call of the desk is about.
func idsIn(args json.RawMessage) []string {
	var ids []string
	if json.Unmarshal(args, &ids) == nil {
		return ids
	}
	var signed struct{ For []string }
	if err := json.Unmarshal(args, &signed); err != nil {
		panic(err)
	}
	return signed.For
}

// checkAllowed holds that no call leaves which must be asked for and was not
// approved, for the workflow or as it is.
func (l *life) checkAllowed(c tool.Call) {
	if c.Method != "sign" {
		return
	}
	rows := l.k.ledgerRows(l.w)
	slices.Reverse(rows) // a key belongs to the last call that has it
	at := slices.IndexFunc(rows, func(m mutationstore.Mutation) bool { return m.IdempotencyKey == c.Key })
	if at < 0 {
		l.k.t.Fatalf("the call %s leaves and is not in the ledger", c.Args)
	}
	l.k.read(func(ctx context.Context, tx *store.Tx) error {
		rules, err := mutationstore.In(tx).ApprovalRules(ctx, l.w.ID)
		if err != nil || len(rules) > 0 {
			return err
		}
		a, err := mutationstore.In(tx).NewestApproval(ctx, rows[at].RunID)
		if errors.Is(err, pawl.ErrNotFound) || err == nil && (a.State != mutationstore.ApprovalUsed || string(a.Arguments) != string(c.Args)) {
			l.k.t.Fatalf("the call %s leaves, and what was asked is %s %s\n%s", c.Args, a.Arguments, a.State, l.story())
		}
		return err
	})
}
