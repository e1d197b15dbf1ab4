package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	calendarspec "github.com/pawlrun/pawl/internal/calendar/spec"
	sourcespec "github.com/pawlrun/pawl/internal/source/spec"
)

func newApplyCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply -f PATH...",
		Short: "Create or update workflows, sources, schedules and hooks from files",
		Long: "Creates or updates the resources defined in files, or in folders and everything below them:\n" +
			"workflows in *.workflow.ts and *.workflow.js, sources, schedules and hooks in *.yaml and *.yml.\n" +
			"A file can hold several YAML definitions.\n\n" +
			"All files are validated first, as by pawl validate; if one has errors, nothing is sent.\n" +
			"Unchanged definitions are left alone.",
		Example: "  pawl apply -f mail.workflow.ts\n" +
			"  pawl apply -f definitions --dry-run\n" +
			"  pawl apply -f - < prices.yaml\n" +
			"  pawl apply -f - --filename mail.workflow.ts < mail.workflow.ts",
		GroupID: groupChange, Args: takes(0, -1),
	}
	a := &applier{p: p, flags: addSettingFlags(cmd, forClient), out: addOutputFlag(cmd, formatTable, formatJSON, formatYAML), counts: map[string]int{}, warned: map[string]bool{}, needing: map[string]bool{}}
	files := cmd.Flags().StringArrayP("file", "f", nil, "apply the file or folder at `PATH`; - reads stdin (repeatable)")
	cmd.Flags().StringVar(&a.filename, "filename", "", "treat stdin as a file called `NAME`, ending in .workflow.ts or .workflow.js (default YAML)")
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "show what would change without changing it")
	cmd.Flags().BoolVar(&a.diff, "diff", false, "show a diff of each definition (default on a terminal)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		paths := append(*files, args...)
		if len(paths) == 0 {
			return usageError("Usage: "+cmd.UseLine(), "there is nothing to apply")
		}
		return a.apply(cmd.Context(), paths)
	}
	return cmd
}

// applier is one call of apply.
type applier struct {
	p        *Process
	flags    *settingFlags
	out      *outputFlag
	filename string
	dryRun   bool
	diff     bool

	client  *client.Client
	counts  map[string]int // of what was done, in the server's words
	answers []json.RawMessage

	warned    map[string]bool // places of warnings that were told
	documents []applicable    // that are sent, in this order
	needing   map[string]bool // the workflows that need sources, which are sent before them
	assumed   []string        // what a dry run would have made already, for what refers to it
}

func (a *applier) apply(ctx context.Context, paths []string) (err error) {
	if a.client, err = a.flags.connect(a.p); err != nil {
		return err
	}
	defer a.client.Close()
	found, cleanUp, err := a.find(paths)
	if err != nil {
		return err
	}
	defer cleanUp()
	names, err := a.check(ctx, found, paths)
	if err != nil {
		return err
	}
	err = a.sendAll(ctx, found.workflows, names)
	if len(a.answers) > 0 {
		a.summarize()
	}
	if a.out.machine() && (err == nil || len(a.answers) > 0) {
		err = errors.Join(err, writeMachine(a.p.Stdout, a.out.format, listOf(a.answers)))
	}
	return err
}

// check checks all files and returns the names of the workflows. Its error
// means that nothing may be sent.
func (a *applier) check(ctx context.Context, found *definitions, paths []string) ([]string, error) {
	results, err := checkWorkflows(ctx, found.workflows, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range results {
		names = append(names, c.Name)
		if c.needs {
			a.needing[c.Name] = true
		}
	}
	results = append(results, a.checkDocuments(found.yaml, paths)...)
	refuseSameNames(results)
	results = append(results, found.strange...)
	wrong := 0
	for _, c := range results {
		for _, w := range c.Warnings {
			a.warn(c.File, w)
		}
		for _, f := range c.Errors {
			a.p.sayFault(c.File, "", f)
		}
		if !c.OK {
			wrong++
		}
	}
	switch {
	case wrong > 0:
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Msg: fmt.Sprintf("nothing was applied, because %d of %s cannot be", wrong, plural(len(results), "definition"))}
	case len(names)+len(a.documents) == 0:
		return nil, &pawl.Error{Code: pawl.CodeInvalid, Msg: "there is nothing to apply in " + sentence(paths), Hint: "Workflows are in *.workflow.ts and *.workflow.js, sources and schedules in *.yaml and *.yml."}
	}
	return names, nil
}

// warn tells of something in a file that is probably not meant. What was found
// before it was sent, the server finds again.
func (a *applier) warn(file string, w fault) {
	if place := fmt.Sprint(file, w.Line, w.Column, w.Message); !a.warned[place] {
		a.warned[place] = true
		a.p.sayFault(file, "warning: ", w)
	}
}

// wantsDiff reports whether it is shown how definitions differ.
func (a *applier) wantsDiff() bool {
	return !a.out.machine() && (a.diff || a.dryRun || a.p.StdoutTerminal)
}

// report says what became of one definition, and how it differs if that is
// wanted.
func (a *applier) report(answer json.RawMessage, kind, name, what string, diff func() (string, error)) error {
	a.counts[what]++
	if a.dryRun && what == "created" && (kind == calendarspec.Kind || kind == sourcespec.Kind) {
		a.assumed = append(a.assumed, kind+":"+name)
	}
	a.answers = append(a.answers, answer)
	if a.out.machine() {
		return nil
	}
	note := ""
	if a.dryRun {
		note = " (dry run)"
	}
	if _, err := fmt.Fprintf(a.p.Stdout, "%s %s %s%s\n", kind, name, what, note); err != nil {
		return err
	}
	if what != "updated" || !a.wantsDiff() {
		return nil
	}
	text, err := diff()
	if err != nil {
		return err
	}
	return a.writeDiff(text)
}

// refusedFile tells which file the server did not take. Its places are those
// of the file, so where the script was in the request does not matter.
func refusedFile(file string, err error) error {
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Code == pawl.CodeInvalid {
		refused := *e
		refused.Fields = nil
		for _, f := range e.Fields {
			refused.Fields = append(refused.Fields, pawl.Field{Message: f.Message})
		}
		err = &refused
	}
	return fmt.Errorf("apply %s: %w", file, err)
}

// writeDiff writes a diff: as it is for programs, and for a terminal with
// colours and without foreign control codes.
func (a *applier) writeDiff(diff string) error {
	colours := map[byte]text.Color{'+': text.FgGreen, '-': text.FgRed, '@': text.FgCyan}
	for line := range strings.Lines(diff) {
		if a.p.StdoutTerminal {
			line = strings.ReplaceAll(line, "\t", "    ")
			line = oneLine(strings.TrimSuffix(line, "\n")) + "\n"
		}
		if colour, ok := colours[line[0]]; ok && a.p.paint(a.p.StdoutTerminal) {
			line = colour.Sprint(strings.TrimSuffix(line, "\n")) + "\n"
		}
		if _, err := fmt.Fprint(a.p.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

// summarize counts what was done.
func (a *applier) summarize() {
	var parts []string
	for _, what := range []string{"created", "updated", "unchanged"} {
		if n := a.counts[what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	if a.dryRun {
		a.p.say("Dry run, nothing was changed: %s.", strings.Join(parts, ", "))
		return
	}
	a.p.say("%s.", strings.Join(parts, ", "))
}
