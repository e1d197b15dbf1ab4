package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	document "github.com/pawlrun/pawl/internal/definition"
)

func newAccountCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "account", Short: "Manage the key and prepaid balance of a billing account",
		Example: "  pawl get accounts\n" +
			"  pawl account set default --balance 10.00",
		GroupID: groupChange, Args: cobra.ArbitraryArgs, RunE: unknownCommand,
	}
	cmd.AddCommand(newAccountSetCommand(p))
	return cmd
}

// accountSetting is one call of account set.
type accountSetting struct {
	key       string
	noKey     bool
	balance   string
	noBalance bool
	timezone  string
}

func newAccountSetCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "set ID|default", Short: "Set the key, time zone or prepaid balance of a billing account (admins only)",
		Long: "Sets the key that identifies the caller to graphs, and the remaining balance of a prepaid\n" +
			"account. Name the account by its ID; \"default\" is your own. Only admins can do this.\n\n" +
			"The key itself is never stored. --key names an environment variable of the server that runs\n" +
			"graphs; it is read again for every attempt and passed to executors with callerKey. A run\n" +
			"that may cost more than the balance does not start. Daily caps of grants count the days of\n" +
			"the time zone, which is UTC unless it is set.",
		Example: "  pawl account set default --key '${TEAM_KEY}'\n" +
			"  pawl account set default --balance 10.00\n" +
			"  pawl account set default --timezone Europe/Berlin\n" +
			"  pawl account set 3f1a2b4c-5d6e-5c3a-9d2e-0192f0c15b7e --no-key --no-balance",
		Args: takes(1, 1),
	}
	var s accountSetting
	flags := addSettingFlags(cmd, forClient)
	cmd.Flags().StringVar(&s.key, "key", "", "use the key in the server's environment variable `'${NAME}'`; single quotes keep your shell from expanding it")
	cmd.Flags().BoolVar(&s.noKey, "no-key", false, "remove the key")
	cmd.Flags().StringVar(&s.balance, "balance", "", "make the account prepaid, with `USD` remaining")
	cmd.Flags().BoolVar(&s.noBalance, "no-balance", false, "make the account not prepaid")
	cmd.Flags().StringVar(&s.timezone, "timezone", "", "count the days of daily caps in the time `ZONE`, such as Europe/Berlin")
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.ValidArgsFunction = completeName(p, flags, accountKind())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body, err := s.request(cmd.Flags().Changed("key"), cmd.Flags().Changed("balance"))
		if err != nil {
			return err
		}
		path, err := accountKind().pathOf(args[0])
		if err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.Patch(cmd.Context(), path, body)
		if err != nil {
			return err
		}
		if out.machine() {
			return writeMachine(p.Stdout, out.format, raw)
		}
		words, err := accountWords(raw)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "account %s: %s\n", args[0], words)
		return err
	}
	return cmd
}

// request makes the request from the flags: what is not given is not sent, and
// null clears.
func (s *accountSetting) request(key, balance bool) (map[string]any, error) {
	body := map[string]any{}
	switch {
	case key && s.noKey:
		return nil, usageError("Leave one of them out.", "--key and --no-key cannot go together")
	case balance && s.noBalance:
		return nil, usageError("Leave one of them out.", "--balance and --no-balance cannot go together")
	case !key && !s.noKey && !balance && !s.noBalance && s.timezone == "":
		return nil, usageError("Write --key '${TEAM_KEY}', --timezone Europe/Berlin or --balance 10.00.", "there is nothing to set")
	}
	if key {
		if _, ok := document.Reference(s.key); !ok { // it may be a key, so it is not said again
			return nil, usageError("Put the key into an environment variable of the server, and write its name in single quotes, such as '${TEAM_KEY}': without them your shell puts the key itself there.",
				"--key: must be exactly one reference such as ${TEAM_KEY}, never a key")
		}
		body["keyRef"] = s.key
	}
	if balance {
		exact, err := pawl.ParseUSD(s.balance)
		if err != nil {
			return nil, misplaced("--balance", err)
		}
		body["balanceUsd"] = exact
	}
	if s.timezone != "" {
		body["timezone"] = s.timezone
	}
	if s.noKey {
		body["keyRef"] = nil
	}
	if s.noBalance {
		body["balanceUsd"] = nil
	}
	return body, nil
}

// accountWords say what an account is like now.
func accountWords(raw json.RawMessage) (string, error) {
	var a client.Account
	if err := json.Unmarshal(raw, &a); err != nil {
		return "", fmt.Errorf("read account: %w", err)
	}
	words := []string{"no key", balanceWords(a)}
	if a.KeyRef != "" {
		words[0] = string("key " + a.KeyRef)
	}
	if a.BalanceUSD != nil {
		words[1] += " left"
	}
	if a.Timezone != "" { // an older server has none
		words = append(words, "days in "+a.Timezone)
	}
	return strings.Join(words, ", "), nil
}
