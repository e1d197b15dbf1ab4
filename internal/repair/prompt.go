package repair

import (
	"crypto/sha256"
	_ "embed" // prompt.md
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

//go:embed prompt.md
var systemPrompt string

// How much of the evidence a model is shown, in bytes. Scripts are shown
// whole, because the answer has to be whole.
const (
	shownValue   = 16 << 10 // state, prepared, result, one read
	shownReads   = 64 << 10 // all reads; the last ones are the nearest to the fault
	shownAttempt = 64 << 10
)

// evidencePrompt writes the evidence for a model. The same evidence always
// gives the same text.
func evidencePrompt(e Evidence) (string, error) {
	whole, err := json.Marshal(e)
	if err != nil {
		return "", internal("the evidence cannot be written as JSON")
	}
	// A hash of all data cannot be part of the data, so nothing inside can
	// pretend to be its end.
	sum := sha256.Sum256(whole)
	p := prompt{boundary: hex.EncodeToString(sum[:8])}
	p.line("The boundary is %s. Correct the script.", p.boundary)
	p.data("names", fmt.Sprintf("workflow: %s\nfile: %s\nhandler: %s\nphase: %s", e.Workflow, e.Filename, e.Handler, e.Phase))
	p.data("script", e.Script)
	p.data("error", e.Error)
	p.value("state", e.State)
	p.value("prepared", e.Prepared)
	p.value("mutation result", e.MutationResult)
	p.reads(e.Reads)
	p.attempts(e.Attempts)
	if e.Types != "" {
		p.data("types of the module pawl", e.Types)
	}
	p.line("")
	p.line("Answer with the whole corrected file in one ```ts code block.")
	return p.text.String(), nil
}

type prompt struct {
	boundary string
	text     strings.Builder
}

func (p *prompt) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

// data writes untrusted text between two lines with the boundary.
func (p *prompt) data(name, text string) {
	p.line("\n=== BEGIN %s %s ===", name, p.boundary)
	p.line("%s", strings.TrimSuffix(text, "\n"))
	p.line("=== END %s %s ===", name, p.boundary)
}

// value writes a JSON value, and nothing when there is none.
func (p *prompt) value(name string, raw json.RawMessage) {
	if len(raw) > 0 {
		p.data(name, shorten(string(raw), shownValue))
	}
}

// reads shows the last reads, in their order.
func (p *prompt) reads(reads []Read) {
	var shown []string
	left := shownReads
	for i, read := range slices.Backward(reads) {
		text := fmt.Sprintf("%d. %s %s\n   answered %s", i+1, read.Op,
			shorten(string(read.Call), shownValue), shorten(string(read.Answer), shownValue))
		if left -= len(text); left < 0 {
			shown = append(shown, fmt.Sprintf("(%d earlier calls are left out)", i+1))
			break
		}
		shown = append(shown, text)
	}
	if len(shown) > 0 {
		slices.Reverse(shown)
		p.data("calls of the failed run", strings.Join(shown, "\n"))
	}
}

func (p *prompt) attempts(attempts []Attempt) {
	for i, attempt := range attempts {
		p.data(fmt.Sprintf("earlier attempt %d", i+1), shorten(attempt.Script, shownAttempt))
		p.data(fmt.Sprintf("what was wrong with attempt %d", i+1), shorten(attempt.Error, shownValue))
	}
}

// shorten cuts a text at a limit of bytes, between characters, and says so.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return fmt.Sprintf("%s (%d more bytes are left out)", s[:limit], len(s)-limit)
}
