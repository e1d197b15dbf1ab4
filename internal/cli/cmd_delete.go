package cli

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func newDeleteCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete KIND NAME", Short: "Delete a resource",
		Long: "Deletes a resource. A job that is waiting will not run, and a token is revoked. Workflows,\n" +
			"sources and schedules are deleted after a confirmation prompt, or with --yes. Their history\n" +
			"stays readable, but a source's rows are deleted with it unless you use --keep-rows.\n\n" +
			"A rule lets a workflow make a call without approval. Name it by its workflow, tool and\n" +
			"method; once it is deleted, the call needs approval again.",
		Example: "  pawl delete job 42\n" +
			"  pawl delete workflow mail-to-sheet --yes\n" +
			"  pawl delete source prices --keep-rows\n" +
			"  pawl delete rule mail-to-sheet sheet append",
		GroupID: groupChange, Args: takes(2, 4),
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.ValidArgsFunction = completeKind(p, flags, func(k kind) bool { return k.removed != "" })
	yes := cmd.Flags().BoolP("yes", "y", false, "skip the confirmation prompt")
	keepRows := cmd.Flags().Bool("keep-rows", false, "keep the source's rows in its table")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		k, err := findKind(args[0])
		if err != nil {
			return err
		}
		query := url.Values{}
		switch {
		case k.removed == "":
			return usageError("", "%s cannot be deleted", k.plural)
		case *keepRows && k.plural != sourceKind().plural:
			return usageError("", "--keep-rows does not apply to %s", k.plural)
		case *keepRows:
			query.Set("keepRows", "true")
		}
		r := removal{p: p, kind: k, words: args[1:], query: query, ask: k.loses != "" && !*yes}
		return r.run(cmd, flags)
	}
	return cmd
}

// confirm asks whether to go on, and returns an error unless the answer is
// yes. Where nobody can answer it does not ask.
func confirm(ctx context.Context, p *Process, question string) error {
	if !p.asks() {
		return usageError("Add --yes to do it without a question.", "this needs confirmation, and there is no terminal to ask on")
	}
	if _, err := fmt.Fprintf(p.Stderr, "%s [y/N] ", oneLine(question)); err != nil {
		return err
	}
	answered := make(chan string, 1)
	go func() { // a terminal cannot be told to stop waiting
		line, _ := bufio.NewReader(p.Stdin).ReadString('\n') // the end of input is no yes
		answered <- line
	}()
	var answer string
	select {
	case answer = <-answered:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &pawl.Error{Code: pawl.CodeConflict, Msg: "not done, because the answer was not yes"}
}

// find is where the thing is that some words name, and its name.
func (k kind) find(cmd *cobra.Command, words []string) (path, name string, err error) {
	if k.locate != nil {
		return k.locate(words)
	}
	if len(words) > 1 {
		return "", "", usageError("Usage: "+cmd.UseLine(), "%s does not take %q", cmd.CommandPath(), words[1])
	}
	path, err = k.pathOf(words[0])
	return path, words[0], err
}

// removal is one call that deletes something.
type removal struct {
	p     *Process
	kind  kind
	words []string // that name the thing
	query url.Values
	ask   bool // first
}

// remove deletes the thing that some words name, and says so.
func remove(cmd *cobra.Command, p *Process, flags *settingFlags, k kind, words ...string) error {
	return removal{p: p, kind: k, words: words}.run(cmd, flags)
}

func (r removal) run(cmd *cobra.Command, flags *settingFlags) error {
	path, name, err := r.kind.find(cmd, r.words)
	if err != nil {
		return err
	}
	if r.ask && !r.p.asks() {
		return confirm(cmd.Context(), r.p, "") // says that nobody can be asked
	}
	c, err := flags.connect(r.p)
	if err != nil {
		return err
	}
	defer c.Close()
	if r.kind.byID {
		if path, err = r.kind.locateOne(cmd.Context(), c, name); err != nil {
			return err
		}
	}
	if r.kind.short {
		if path, name, err = r.kind.located(cmd.Context(), c, name); err != nil {
			return err
		}
	}
	if r.ask {
		if err := r.confirm(cmd.Context(), c, path, name); err != nil {
			return err
		}
	}
	answer, err := c.DeleteWith(cmd.Context(), path, r.query)
	if err != nil {
		return err
	}
	said := r.kind.removed
	if r.kind.took != nil {
		said += r.kind.took(answer, r.query)
	}
	_, err = fmt.Fprintf(r.p.Stdout, "%s %s %s\n", r.kind.singular, name, said)
	return err
}

// confirm asks whether to delete the thing, and tells what is lost by it.
func (r removal) confirm(ctx context.Context, c *client.Client, path, name string) error {
	loses := r.kind.loses
	if r.kind.losesNow != nil {
		raw, err := c.Get(ctx, path)
		if err != nil {
			return err
		}
		if loses, err = r.kind.losesNow(raw, r.query); err != nil {
			return err
		}
	}
	return confirm(ctx, r.p, fmt.Sprintf("Delete %s %s? %s", r.kind.singular, name, loses))
}
