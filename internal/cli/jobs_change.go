package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
)

// jobFilterFlags are the flags by which a command picks many jobs.
type jobFilterFlags struct {
	which client.JobFilterRequest
	dry   bool
}

func addJobFilterFlags(cmd *cobra.Command) *jobFilterFlags {
	j := &jobFilterFlags{}
	f := cmd.Flags()
	f.StringVar(&j.which.Task, "task", "", "jobs: those of `TASK`")
	f.StringVar(&j.which.Lane, "lane", "", "jobs: those of `LANE`")
	f.StringVar(&j.which.Key, "key", "", "jobs: those with `KEY`")
	f.StringVar(&j.which.State, "state", "", "jobs: those in `STATE`: scheduled, pending, running or failed")
	f.StringVar(&j.which.Error, "error", "", "jobs: those whose last error contains `TEXT`")
	f.StringVar(&j.which.OlderThan, "older-than", "", "jobs: those made longer ago than `TIME`, such as 5m, 1h30m or 7d")
	f.BoolVar(&j.dry, "dry-run", false, "jobs: only count them")
	return j
}

// given reports whether any of the flags was used.
func (j *jobFilterFlags) given() bool { return j.dry || j.which != (client.JobFilterRequest{}) }

// onlyForJobs refuses the flags where something else is changed.
func (j *jobFilterFlags) onlyForJobs(cmd *cobra.Command) error {
	if j.given() {
		return usageError(fmt.Sprintf("Write: pawl %s jobs --task TASK", cmd.Name()), "these flags pick jobs, and go with %s jobs", cmd.CommandPath())
	}
	return nil
}

// change asks until nothing is left that the flags pick, and says how many there were.
// said is what became of them, and would what would have.
func (j *jobFilterFlags) change(cmd *cobra.Command, p *Process, flags *settingFlags, ask func(*client.Client, context.Context, client.JobsChangeRequest) (client.ChangedJobs, error), said, would string) error {
	if j.which == (client.JobFilterRequest{}) {
		return usageError("Add --task, --lane, --key, --state, --error or --older-than.", "%s jobs needs to be told which", cmd.CommandPath())
	}
	c, err := flags.connect(p)
	if err != nil {
		return err
	}
	defer c.Close()
	if j.dry {
		said = would
	}
	matched, changed := 0, 0
	for cursor := ""; ; {
		got, err := ask(c, cmd.Context(), client.JobsChangeRequest{Filter: j.which, Cursor: cursor, DryRun: j.dry})
		if err != nil {
			if changed > 0 { // what was done is done
				p.say("%s %s before that.", plural(changed, "job"), said)
			}
			return err
		}
		matched, changed = matched+got.Matched, changed+got.Changed
		if cursor = string(got.NextCursor); cursor == "" {
			break
		}
	}
	n := changed
	if j.dry {
		n = matched
	}
	if _, err := fmt.Fprintf(p.Stdout, "%s %s\n", plural(n, "job"), said); err != nil {
		return err
	}
	if left := matched - changed; left > 0 && !j.dry {
		p.say("%s ended or changed meanwhile.", plural(left, "job"))
	}
	return nil
}
