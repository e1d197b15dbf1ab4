package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/visible"
)

// Run runs the command that the process was started with, and returns its exit
// code. Nothing of it outlives the call.
func Run(ctx context.Context, p *Process) int {
	root := newRoot(p) //nolint:contextcheck // commands get the context below, from cobra
	root.SetArgs(p.Args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return pawl.ExitDone
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = &pawl.Error{Code: pawl.CodeInternal, Msg: "interrupted"}
	}
	p.printError(err)
	return pawl.ErrorCode(err).ExitCode()
}

// printError tells what went wrong and what to do about it. Unlike answers of
// the API it shows the cause: whoever runs the command may know.
func (p *Process) printError(err error) {
	label, advice := painted("error:"), painted("hint:")
	if p.paint(p.StderrTerminal) {
		label = painted(text.Colors{text.FgHiRed, text.Bold}.Sprint("error:"))
		advice = painted(text.FgHiCyan.Sprint("hint:"))
	}
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		p.say("%s %s", label, err)
		return
	}
	if e.Reason == "" {
		p.say("%s %s", label, err)
	} else { // for programs that read along
		p.say("%s %s (%s)", label, err, e.Reason)
	}
	hint := e.Hint
	for _, f := range e.Fields {
		if len(e.Fields) == 1 && strings.Contains(err.Error(), f.Message) {
			continue // it was said above
		}
		p.say("  %s", strings.TrimSpace(f.Pointer+" "+f.String()))
		if f.Hint == hint { // it was said with its fault
			hint = ""
		}
	}
	if hint != "" {
		p.say("%s %s", advice, hint)
	}
}

// painted is text of this program itself, with the codes of its colours.
type painted string

// say writes a line of talk. If nobody can be reached on stderr, there is
// nobody to tell. Text of others reaches the terminal without codes.
func (p *Process) say(format string, args ...any) {
	for i, arg := range args {
		switch a := arg.(type) {
		case string:
			args[i] = visible.Text(a)
		case error:
			args[i] = visible.Text(a.Error())
		case fmt.Stringer:
			args[i] = visible.Text(a.String())
		}
	}
	_, _ = fmt.Fprintf(p.Stderr, format+"\n", args...)
}

// usageError is a command line that cannot be understood.
func usageError(hint, format string, args ...any) error {
	return &pawl.Error{Code: pawl.CodeUsage, Msg: fmt.Sprintf(format, args...), Hint: hint}
}
