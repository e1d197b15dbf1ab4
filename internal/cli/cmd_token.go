package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
)

func newTokenCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Create, list and revoke API tokens",
		Example: "  pawl token create deploy-robot --scope jobs:write --expires 90d\n" +
			"  pawl token list",
		GroupID: groupChange, Args: cobra.ArbitraryArgs, RunE: unknownCommand,
	}
	cmd.AddCommand(newTokenCreateCommand(p), newTokenListCommand(p), newTokenRevokeCommand(p))
	return cmd
}

func newTokenCreateCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a token",
		Long:    "Creates a token and prints it. It is shown only once.",
		Example: "  pawl token create deploy-robot --scope jobs:write --expires 90d",
		Args:    takes(1, 1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	scopes := cmd.Flags().StringSlice("scope", []string{"read"}, "allow `SCOPE`: read, write, admin, or a resource scope such as jobs:write (repeatable)")
	user := cmd.Flags().String("user", "", "create the token for `USER`, who is added if new (default you)")
	expires := cmd.Flags().String("expires", "", "expire after `TIME`, such as 90d, or at a point in time (default never)")
	out := addOutputFlag(cmd, formatTable, formatJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body := map[string]any{"name": args[0], "scopes": *scopes}
		if *user != "" {
			body["user"] = *user
		}
		if *expires != "" {
			at, err := expiry(*expires, time.Now())
			if err != nil {
				return err
			}
			body["expiresAt"] = pawl.FormatTime(at)
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.Post(cmd.Context(), tokensPath, body)
		if err != nil {
			return err
		}
		if out.machine() {
			return writeMachine(p.Stdout, out.format, raw)
		}
		return printToken(p, raw)
	}
	return cmd
}

// printToken writes the token alone to stdout, so that it can be captured.
func printToken(p *Process, raw json.RawMessage) error {
	var made struct {
		ID    string `json:"id"`
		Token string `json:"token"`
	}
	if err := json.Unmarshal(raw, &made); err != nil || made.Token == "" {
		return &pawl.Error{Code: pawl.CodeInternal, Op: "make token", Msg: "the answer holds no token", Err: err}
	}
	p.say("This is the only time the token is shown. Revoke it with: pawl token revoke %s", made.ID)
	_, err := fmt.Fprintln(p.Stdout, made.Token)
	return err
}

// expiry reads a length of time from now, or an instant.
func expiry(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	d, err := parseDuration(text)
	if err != nil || d <= 0 {
		return time.Time{}, usageError("Use 90d, 12h or 2027-01-01T00:00:00Z.", "--expires: %q is not a time", text)
	}
	return now.Add(d), nil
}

func newTokenListCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List tokens, without their secrets", Example: "  pawl token list\n  pawl token list -o json", Args: takes(0, 0)}
	g := &getter{p: p, flags: addSettingFlags(cmd, forClient), out: addOutputFlag(cmd, formatTable, formatWide, formatJSON, formatYAML)}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := g.prepare(cmd.Context(), []string{tokenKind().plural}); err != nil {
			return err
		}
		defer g.client.Close()
		return g.show(cmd.Context())
	}
	return cmd
}

func newTokenRevokeCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token",
		Example: "  pawl token list\n" +
			"  pawl token revoke 0192f0c1-7c2d-7e4f-8a3b-3f1a2b4c5d6e",
		Args: takes(1, 1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return remove(cmd, p, flags, tokenKind(), args[0])
	}
	return cmd
}
