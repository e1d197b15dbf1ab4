package cli

import (
	"encoding/json"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/text"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/visible"
)

// reportChecked tells what became of the definitions: what is right on stdout,
// what is wrong on stderr, or everything on stdout as JSON. It returns an
// error if one has faults.
func reportChecked(p *Process, out *outputFlag, list []checked) error {
	wrong := 0
	for _, c := range list {
		if !c.OK {
			wrong++
		}
	}
	if err := writeChecked(p, out, list); err != nil {
		return err
	}
	switch {
	case wrong == 0:
		return nil
	case len(list) == 1:
		return &pawl.Error{Code: pawl.CodeInvalid, Msg: "the definition has errors"}
	}
	return &pawl.Error{Code: pawl.CodeInvalid, Msg: fmt.Sprintf("%d of %d definitions have errors", wrong, len(list))}
}

func writeChecked(p *Process, out *outputFlag, list []checked) error {
	if out.machine() {
		raw, err := json.Marshal(map[string]any{"items": list})
		if err != nil {
			return fmt.Errorf("write results: %w", err)
		}
		return writeMachine(p.Stdout, out.format, raw)
	}
	for _, c := range list {
		for _, w := range c.Warnings {
			p.sayFault(c.File, "warning: ", w)
		}
		for _, f := range c.Errors {
			p.sayFault(c.File, "", f)
		}
		if !c.OK {
			continue
		}
		ok := "ok"
		if p.paint(p.StdoutTerminal) {
			ok = text.FgHiGreen.Sprint(ok)
		}
		if _, err := fmt.Fprintf(p.Stdout, "%s: %s (%s)\n", visible.Text(c.File), ok, visible.Text(c.summary)); err != nil {
			return err
		}
	}
	return nil
}

// sayFault writes file:line:column: message, as compilers do and editors
// understand, and the hint below it.
func (p *Process) sayFault(file, label string, f fault) {
	place, advice := file, "hint:"
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", file, f.Line, f.Column)
	}
	place = visible.Text(place)
	if p.paint(p.StderrTerminal) {
		place, advice = text.Bold.Sprint(place), text.FgHiCyan.Sprint(advice)
		label = text.FgHiYellow.Sprint(label)
	}
	p.say("%s: %s%s", painted(place), painted(label), f.Message)
	if f.Hint != "" {
		p.say("  %s %s", painted(advice), f.Hint)
	}
}
