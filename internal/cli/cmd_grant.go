package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
)

func newGrantCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "grant", Short: "Create, list and revoke grants for graphs to run on your behalf",
		Example: "  pawl grant create --graph langgraph:poet --usd-per-day 2 --expires 90d\n" +
			"  pawl grant list\n" +
			"  pawl grant revoke 0192f0c1-6a1e-7b3c-8d2e-3f1a2b4c5d6e",
		GroupID: groupChange, Args: cobra.ArbitraryArgs, RunE: unknownCommand,
	}
	cmd.AddCommand(newGrantCreateCommand(p), newGrantListCommand(p), newGrantRevokeCommand(p))
	return cmd
}

// granting is one call of grant create.
type granting struct {
	graphs     []string
	everything bool
	consent    bool
	usdPerDay  string
	usdPerRun  string
	runsPerDay int64
	expires    string
}

func newGrantCreateCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create", Short: "Create a grant for graphs to run on your behalf",
		Long: "Allows graphs to run on your behalf and at your cost, and prints the ID of the grant for use\n" +
			"in schedules. Caps limit what runs may cost; days are in UTC. --all-graphs allows every\n" +
			"current and future graph and needs your consent, at the prompt or with --consent.",
		Example: "  pawl grant create --graph langgraph:poet --usd-per-day 2 --expires 90d\n" +
			"  pawl grant create --all-graphs --consent --runs-per-day 100",
		Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	var g granting
	flags := addSettingFlags(cmd, forClient)
	cmd.Flags().StringSliceVar(&g.graphs, "graph", nil, "allow the graph `PROVIDER:NAME` (repeatable)")
	cmd.Flags().BoolVar(&g.everything, "all-graphs", false, "allow every current and future graph")
	cmd.Flags().BoolVar(&g.consent, "consent", false, "consent to --all-graphs without a prompt")
	cmd.Flags().StringVar(&g.usdPerDay, "usd-per-day", "", "allow runs to cost at most `USD` a day")
	cmd.Flags().StringVar(&g.usdPerRun, "usd-per-run", "", "allow a run to cost at most `USD`")
	cmd.Flags().Int64Var(&g.runsPerDay, "runs-per-day", 0, "allow at most `N` runs a day (default unlimited)")
	cmd.Flags().StringVar(&g.expires, "expires", "", "expire after `TIME`, such as 90d, or at a point in time (default never)")
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		body, err := g.request(cmd.Flags().Changed("runs-per-day"))
		if err != nil {
			return err
		}
		if g.everything && !g.consent {
			if err := g.agree(cmd, p); err != nil {
				return err
			}
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.Post(cmd.Context(), client.GrantsPath, body)
		if err != nil {
			return err
		}
		if out.machine() {
			return writeMachine(p.Stdout, out.format, raw)
		}
		p.say("Granted to run %s. Take it back with: pawl grant revoke %s", grantedWords(body), idOf(raw))
		_, err = fmt.Fprintln(p.Stdout, idOf(raw))
		return err
	}
	return cmd
}

// request makes the request from the flags.
func (g *granting) request(limited bool) (body client.GrantRequest, err error) {
	switch {
	case g.everything && len(g.graphs) > 0:
		return body, usageError("Leave one of them out.", "--all-graphs and --graph cannot go together")
	case !g.everything && len(g.graphs) == 0:
		return body, usageError("Write --graph langgraph:poet.", "the grant needs a graph that may run")
	case g.consent && !g.everything:
		return body, usageError("Leave it out.", "--consent is for --all-graphs only")
	case limited && g.runsPerDay < 0:
		return body, usageError("", "--runs-per-day: %d is below zero", g.runsPerDay)
	}
	for _, id := range g.graphs {
		if _, _, err := contract.ParseGraphID(id); err != nil {
			return body, misplaced("--graph", err)
		}
	}
	body.Graphs, body.WildcardConsent = g.graphs, g.everything
	if g.everything {
		body.Graphs = []string{"*"}
	}
	if body.Caps, err = g.caps(limited); err != nil || g.expires == "" {
		return body, err
	}
	at, err := expiry(g.expires, time.Now())
	body.ExpiresAt = client.At(at)
	return body, err
}

// caps are the bounds that were given.
func (g *granting) caps(limited bool) (caps client.CapsRequest, err error) {
	for _, amount := range []struct {
		flag, text string
		into       **pawl.USD
	}{{"--usd-per-day", g.usdPerDay, &caps.USDPerDay}, {"--usd-per-run", g.usdPerRun, &caps.USDPerRun}} {
		if amount.text == "" {
			continue
		}
		exact, err := pawl.ParseUSD(amount.text)
		if err != nil {
			return caps, misplaced(amount.flag, err)
		}
		*amount.into = &exact
	}
	if limited {
		caps.RunsPerDay = &g.runsPerDay
	}
	return caps, nil
}

// agree asks for the consent that a grant of everything needs.
func (g *granting) agree(cmd *cobra.Command, p *Process) error {
	if !p.asks() {
		return usageError("Add --consent if you agree that every graph, of now and later, may run in your name.", "--all-graphs needs your consent, and there is no terminal to ask on")
	}
	return confirm(cmd.Context(), p, "Let every graph, of now and later, run in your name and at your cost?")
}

// grantedWords say what was allowed.
func grantedWords(g client.GrantRequest) string {
	words := strings.Join(g.Graphs, ", ")
	if g.WildcardConsent {
		words = "every graph, of now and later"
	}
	if caps := capWords(client.Caps(g.Caps)); caps != "" {
		words += ", for at most " + caps
	}
	return words
}

func newGrantListCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List your grants", Example: "  pawl grant list\n  pawl grant list --all -o json", Args: takes(0, 0)}
	g := &getter{p: p, flags: addSettingFlags(cmd, forClient), out: addOutputFlag(cmd, formatTable, formatWide, formatJSON, formatYAML)}
	cmd.Flags().BoolVar(&g.all, "all", false, "list grants of all users, for admins")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := g.prepare(cmd.Context(), []string{grantKind().plural}); err != nil {
			return err
		}
		defer g.client.Close()
		return g.show(cmd.Context())
	}
	return cmd
}

func newGrantRevokeCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a grant, so that nothing runs under it any more",
		Example: "  pawl grant list\n" +
			"  pawl grant revoke 0192f0c1-6a1e-7b3c-8d2e-3f1a2b4c5d6e",
		Args: takes(1, 1),
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.ValidArgsFunction = completeName(p, flags, grantKind())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, err := grantKind().pathOf(args[0])
		if err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Post(cmd.Context(), path+"/revoke", nil); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "grant %s revoked\n", args[0])
		return err
	}
	return cmd
}
