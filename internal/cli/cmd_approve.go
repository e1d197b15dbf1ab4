package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// nothingSeen is the hash that is sent for a run that asked nothing when it
// was looked at. No call has it, so that one which is asked for meanwhile is
// not approved unseen.
const nothingSeen = "none"

func newApproveCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "approve RUN", Short: "Approve the call that a run is waiting to make, or answer its question",
		Long: "Approves the call that a run is waiting to make. On a terminal, the command shows what will\n" +
			"be sent and asks for confirmation; otherwise it approves the call as it is now. If the call\n" +
			"has changed in the meantime, the command fails with exit code 4.\n\n" +
			"To answer the question of a graph that a schedule runs, use --answer. The default answer is\n" +
			"true.",
		Example: "  pawl get approvals\n" +
			"  pawl approve 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e\n" +
			"  pawl approve 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e --always --yes\n" +
			"  pawl approve 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e --answer '{\"title\": \"Autumn\"}'",
		GroupID: groupChange, Args: takes(1, 2), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	a := &approver{p: p}
	cmd.Flags().BoolVar(&a.always, "always", false, "approve later calls of this method by this workflow automatically")
	cmd.Flags().StringVar(&a.hash, "hash", "", "approve only the call with this `HASH`, as shown by pawl get approvals -o json")
	cmd.Flags().BoolVarP(&a.yes, "yes", "y", false, "skip the confirmation prompt")
	answer := cmd.Flags().String("answer", "", "answer a graph's question with `JSON`, @FILE, or - for stdin")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := onlyRun(cmd, args)
		if err != nil {
			return err
		}
		if *answer != "" {
			if a.answer, err = readJSON(p, "--answer", *answer); err != nil {
				return err
			}
		}
		if a.path, err = runKind().pathOf(id); err != nil {
			return err
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		if a.path, id, err = runKind().located(cmd.Context(), c, id); err != nil {
			return err
		}
		return a.approve(cmd, c, id)
	}
	return cmd
}

// onlyRun is the run that a command is about. Its kind may be written before
// it, as other commands want it.
func onlyRun(cmd *cobra.Command, args []string) (string, error) {
	if len(args) == 2 && args[0] != runKind().singular {
		return "", usageError("Usage: "+cmd.UseLine(), "%s does not take %q", cmd.CommandPath(), args[1])
	}
	return args[len(args)-1], nil
}

// approver is one call of approve.
type approver struct {
	p           *Process
	always, yes bool
	hash        string // of what the user wants; empty is what there is
	path        string // of the run
	answer      json.RawMessage
}

func (a *approver) approve(cmd *cobra.Command, c *client.Client, id string) error {
	raw, err := c.Get(cmd.Context(), a.path)
	if err != nil {
		return err
	}
	var r client.RunDetail
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("read run: %w", err)
	}
	if r.Kind == string(pawl.KindSchedule) {
		return a.reply(cmd, c, r)
	}
	if a.answer != nil {
		return usageError("Leave it out.", "--answer is for the questions of graphs, and the run is one of the %s %s", r.Kind, r.Lane)
	}
	body, q := map[string]any{"hash": nothingSeen}, question(r)
	if q != nil {
		body["hash"] = q.Hash
	}
	if a.hash != "" {
		body["hash"] = a.hash
	}
	if a.always {
		body["always"] = true
	}
	if q != nil && q.Hash == body["hash"] && a.p.asks() && !a.yes { // nobody is asked what would be refused
		if err := a.ask(cmd, q); err != nil {
			return err
		}
	}
	if _, err := c.Post(cmd.Context(), a.path+"/approve", body); err != nil {
		return err
	}
	said := "approved"
	if a.always && q != nil {
		said += fmt.Sprintf("; the workflow %s may call %s.%s without asking from now on", q.Workflow, q.Tool, q.Method)
	}
	_, err = fmt.Fprintf(a.p.Stdout, "run %s %s\n", id, oneLine(said))
	return err
}

// question is what a run waits for an answer to, or nil.
func question(r client.RunDetail) *client.Approval {
	if r.Status != string(pawl.StatusPausedApproval) || r.Approval == nil || r.Approval.State != client.ApprovalPending {
		return nil
	}
	return r.Approval
}

// ask shows what will be sent, and returns an error unless it may be.
func (a *approver) ask(cmd *cobra.Command, q *client.Approval) error {
	d := newDescription(time.Now())
	d.say("The workflow %s asks whether it may make this call:", q.Workflow)
	describeApproval(d, q)
	d.gap()
	if _, err := fmt.Fprint(a.p.Stderr, d.String()); err != nil {
		return err
	}
	wording := fmt.Sprintf("Let it call %s.%s so?", q.Tool, q.Method)
	if a.always {
		wording = fmt.Sprintf("Let it call %s.%s so, and with whatever arguments from now on?", q.Tool, q.Method)
	}
	return confirm(cmd.Context(), a.p, wording)
}

// describeApproval tells a question. What counts is the call; what the script
// says about it comes last, and as its own words.
func describeApproval(d *description, q *client.Approval) {
	d.gap()
	d.line("Asks for", q.Tool+"."+q.Method)
	d.json("Arguments", q.Arguments)
	d.line("Answer", approvalStory(q))
	d.instant("Asked", q.CreatedAt.Time)
	if q.State == client.ApprovalPending {
		d.instant("Expires", q.ExpiresAt.Time)
	}
	d.instant("Decided", q.DecidedAt.Time)
	if q.Title != "" {
		d.line("Script says", strconv.Quote(string(q.Title))+" (written by the script, not verified)")
	}
}

// approvalStory says what became of a question.
func approvalStory(q *client.Approval) string {
	by := ""
	if q.DecidedBy != "" {
		by = string(" by " + q.DecidedBy)
	}
	switch q.State {
	case client.ApprovalPending:
		return "none yet"
	case client.ApprovalApproved:
		return "approved" + by + "; the call was not made yet"
	case client.ApprovalUsed:
		return "approved" + by + "; the call was made"
	case client.ApprovalRejected:
		return "rejected" + by
	case client.ApprovalExpired:
		return "not answered in time"
	}
	return q.State
}

func newRejectCommand(p *Process) *cobra.Command {
	return newOneCommand(p, &cobra.Command{
		Use: "reject RUN", Short: "Reject the call that a run is waiting to make",
		Long: "Rejects the call that a run is waiting to make. The run ends, the events it had reserved\n" +
			"become pending again, and the workflow is paused, since it would only ask again. A\n" +
			"schedule's run whose graph asks a question ends, and its slot counts as failed.",
		Example: "  pawl get approvals\n" +
			"  pawl reject 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e",
	}, runKind(), "reject", func(answer json.RawMessage) string {
		var r client.RunDetail
		if json.Unmarshal(answer, &r) == nil && r.Kind == string(pawl.KindSchedule) {
			return "rejected"
		}
		return "rejected; its workflow is paused until you resume it"
	})
}
