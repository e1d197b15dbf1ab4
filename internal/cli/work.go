package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/visible"
)

// workWords say what a schedule runs.
func workWords(graph string, r *client.PlainRun) string {
	switch {
	case r == nil:
		return "the graph " + graph
	case len(r.Command) > 0:
		return "the command " + commandLine(r.Command)
	case r.URL != "":
		return cmp.Or(strings.ToUpper(r.Method), "POST") + " " + visible.Line(r.URL)
	case r.Job != nil:
		return "a job of the task " + visible.Line(r.Job.Task)
	}
	return "nothing"
}

// workCell is what a schedule runs, in a table.
func workCell(s client.Schedule) string {
	if s.Run == nil {
		return s.GraphID
	}
	for _, prefix := range []string{"the command ", "a job of the task "} {
		if rest, ok := strings.CutPrefix(workWords("", s.Run), prefix); ok {
			return rest
		}
	}
	return workWords("", s.Run)
}

// commandLine is a command as a shell would take it.
func commandLine(words []string) string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = visible.Line(word)
		if word == "" || strings.ContainsAny(word, " \t\n'\"\\$&|;<>()*?#~`") {
			out[i] = "'" + strings.ReplaceAll(visible.Line(word), "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// describeOutput tells what a command, a URL or a job left behind.
func describeOutput(d *description, o *client.PlainOutput) {
	if o == nil {
		return
	}
	if o.ExitCode != nil {
		d.line("Exit code", fmt.Sprint(*o.ExitCode))
	}
	d.line("Signal", o.Signal)
	if o.Status != 0 {
		d.line("Answer", fmt.Sprint(o.Status))
	}
	d.line("Job", o.JobID)
	block := func(title, text string, total int64) {
		if text == "" {
			return
		}
		d.gap()
		if total > int64(len(text)) {
			title += fmt.Sprintf(" (the last %s of %s)", byteWords(int64(len(text))), byteWords(total))
		}
		d.say("%s:", title)
		for line := range strings.Lines(text) {
			d.say("  %s", visible.Text(strings.TrimSuffix(line, "\n")))
		}
	}
	block("Standard output", o.Stdout, o.StdoutBytes)
	block("Standard error", o.Stderr, o.StderrBytes)
	if len(o.Headers) > 0 {
		d.gap()
		d.say("Headers:")
		for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
			d.say("  %s: %s", visible.Line(name), visible.Line(o.Headers[name]))
		}
	}
	block("Body", o.Body, 0)
	d.json("Result", o.Result)
}

// plainOutput is what the command, URL or job of a run left behind; nil for others.
func plainOutput(r client.RunDetail) *client.PlainOutput {
	if r.Slot == nil {
		return nil
	}
	return r.Slot.Output
}
