package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/workflow"
)

func newValidateCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate PATH...",
		Short: "Validate definitions without a server",
		Long: "Validates files, and all definitions in folders: *.workflow.ts and *.workflow.js, and the\n" +
			"sources, schedules, providers, connections and executors in *.yaml and *.yml. Scripts are\n" +
			"loaded as the server would load them, but no handler runs. Nothing is created, opened or\n" +
			"called.\n\n" +
			"What would never run if it were applied now is an error, as it is for the server: an at in\n" +
			"the past, an until that is over, exceptions that leave out everything. The calendars of all\n" +
			"files that are validated together are known.\n\n" +
			"Errors are reported as file:line:column, and the exit code is then 1.",
		Example: "  pawl validate .\n" +
			"  pawl validate mail.workflow.ts connections -o json",
		GroupID: groupTools, Args: takes(1, -1),
	}
	out := addOutputFlag(cmd, formatTable, formatJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := findDefinitions(p, args)
		if err != nil {
			return err
		}
		ahead := newForesight(found.yaml, time.Now())
		checked, err := checkWorkflows(cmd.Context(), found.workflows, ahead)
		if err != nil {
			return err
		}
		checked = append(checked, checkYAML(p, found.yaml, ahead)...)
		refuseSameNames(checked)
		checked = append(checked, found.strange...)
		if len(checked) == 0 {
			return &pawl.Error{Code: pawl.CodeInvalid, Msg: "there is no definition in " + sentence(args), Hint: definitionHint}
		}
		return reportChecked(p, out, checked)
	}
	return cmd
}

// checked is what became of one definition, and how JSON shows it.
type checked struct {
	File     string  `json:"file"`
	Kind     string  `json:"kind"` // empty if the file is of no kind
	Name     string  `json:"name"` // empty if it could not be read
	OK       bool    `json:"ok"`
	Errors   []fault `json:"errors"`
	Warnings []fault `json:"warnings,omitempty"`

	summary string // in words
	naming  fault  // the place of the name
	needs   bool   // sources
}

// fault is one thing to tell. Line and column count from 1; a line of 0 means
// the file as a whole.
type fault struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func (c *checked) refuse(f fault) {
	c.OK = false
	c.Errors = append(c.Errors, f)
}

// checkWorkflows checks scripts, several at once, in one pool of workers. Its
// error is not about a script.
func checkWorkflows(ctx context.Context, files []definition, ahead *foresight) ([]checked, error) {
	if len(files) == 0 {
		return nil, nil
	}
	workers := min(runtime.GOMAXPROCS(0), len(files))
	pool, err := script.NewPool(script.Config{Workers: workers})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]checked, len(files))
	next := make(chan int)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range next {
				result, err := checkWorkflow(ctx, pool, files[i], ahead)
				if err != nil {
					cancel(err) // the others fail soon, and the first error stays
				}
				results[i] = result
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	group.Wait()
	return results, context.Cause(ctx)
}

func checkWorkflow(ctx context.Context, pool *script.Pool, file definition, ahead *foresight) (checked, error) {
	c := checked{File: file.shown, Kind: string(pawl.KindWorkflow), OK: true, Errors: []fault{}}
	source, err := os.ReadFile(file.path)
	if err != nil {
		c.refuse(fault{Message: "the file cannot be read: " + reason(err)})
		return c, nil
	}
	config, program, err := workflow.Inspect(ctx, pool, file.shown, string(source))
	if err == nil {
		err = ahead.workflow(file.shown, string(source), config)
	}
	if program != nil {
		c.Warnings = faultsOf(program.Warnings)
	}
	if diagnostics, ok := errors.AsType[script.Diagnostics](err); ok {
		for _, f := range faultsOf(diagnostics) {
			c.refuse(f)
		}
		return c, nil
	}
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Code == pawl.CodeInvalid {
		c.refuse(fault{Message: e.Msg, Hint: e.Hint})
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("check %s: %w", file.shown, err)
	}
	c.Name, c.needs = config.Name, len(config.Needs) > 0
	c.summary = fmt.Sprintf("workflow %s, %s, %s", config.Name, plural(len(config.Producers), "producer"), plural(len(config.Consumers), "consumer"))
	c.naming.Line, c.naming.Column = workflow.Locate(string(source), "name")
	return c, nil
}

func faultsOf(diagnostics []script.Diagnostic) []fault {
	var list []fault
	for _, d := range diagnostics {
		list = append(list, fault{d.Line, d.Column, d.Message, d.Hint})
	}
	return list
}

// refuseSameNames refuses definitions with the name of another: a server would
// take one for a new version of the other.
func refuseSameNames(list []checked) {
	first := map[string]string{} // kind and name -> file
	for i := range list {
		c := &list[i]
		if c.Name == "" || !slices.Contains([]string{string(pawl.KindWorkflow), string(pawl.KindSource), string(pawl.KindSchedule)}, c.Kind) {
			continue
		}
		key := c.Kind + " " + c.Name
		if other, taken := first[key]; taken {
			f := c.naming
			f.Message = fmt.Sprintf("%s %q is also defined in %s", c.Kind, c.Name, other)
			f.Hint = "give one of them another name"
			c.refuse(f)
			continue
		}
		first[key] = c.File
	}
}
