package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
)

func newRedeliverCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "redeliver HOOK DELIVERY", Short: "Deliver a webhook again",
		Long: "Lets a delivery of a hook have its effect again, by the hook as it is now. DELIVERY is its ID,\n" +
			"or the one that its sender gave it. What was refused cannot be delivered: its body was not\n" +
			"kept.",
		Example: "  pawl get deliveries github --outcome failed\n" +
			"  pawl redeliver github 355813294120960001",
		GroupID: groupChange, Args: takes(2, 2), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, err := hookKind().pathOf(args[0]); err != nil {
			return err
		}
		if _, err := deliveryKind().pathOf(args[1]); err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		raw, err := c.Post(cmd.Context(), client.DeliveryPath(args[0], args[1], "redeliver"), nil)
		if err != nil {
			return err
		}
		var d client.Delivery
		if err := json.Unmarshal(raw, &d); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		_, err = fmt.Fprintf(p.Stdout, "delivery %s %s: %s\n", d.ID, d.Outcome, d.Effect)
		return err
	}
	return cmd
}
