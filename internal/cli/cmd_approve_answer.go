package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
)

// reply answers what a graph asks. The answer that says nothing else is true.
func (a *approver) reply(cmd *cobra.Command, c *client.Client, r client.RunDetail) error {
	if a.always || a.hash != "" {
		return usageError("Leave them out.", "--always and --hash are for the calls of workflows, and the run is one of the schedule %s", r.Lane)
	}
	answer := a.answer
	if answer == nil {
		answer = json.RawMessage("true")
	}
	if a.p.asks() && !a.yes && r.Question != nil {
		d := newDescription(time.Now())
		d.say("The graph that the schedule %s ran asks:", r.Lane)
		d.json("Question", r.Question.Question)
		d.json("Answer", answer)
		d.gap()
		if _, err := fmt.Fprint(a.p.Stderr, d.String()); err != nil {
			return err
		}
		if err := confirm(cmd.Context(), a.p, "Answer it so?"); err != nil {
			return err
		}
	}
	if _, err := c.Post(cmd.Context(), a.path+"/approve", map[string]json.RawMessage{"answer": answer}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.p.Stdout, "run %s answered\n", r.ID)
	return err
}
