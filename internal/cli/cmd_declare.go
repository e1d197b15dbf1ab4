package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
)

func newDeclareCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "declare TASK", Short: "Declare a task that your own programs serve",
		Long: "Declares TASK, so that jobs of it can be enqueued and pawl work or another worker can serve\n" +
			"them. What is not said is as usual, also for a task that is there already: name all that is\n" +
			"not. It needs a token with jobs:write.",
		Example: "  pawl declare send-email --lease 1m --max-attempts 5\n" +
			"  pawl declare sync --per-lane 4 --rate 100/1m --rate-per lane\n" +
			"  pawl declare index --batch 50/5s\n" +
			"  pawl get tasks",
		GroupID: groupChange, Args: takes(1, 1), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	var ask client.TaskRequest
	var rate, per, batch string
	f := cmd.Flags()
	f.StringVar(&ask.Lease, "lease", "", "let a worker have a job for `TIME` before it must ask for more (default 30s)")
	f.IntVar(&ask.MaxAttempts, "max-attempts", 0, "try jobs that do not say up to `N` times (default 10)")
	f.IntVar(&ask.ConcurrencyPerLane, "per-lane", 0, "let `N` jobs of a lane be in hand at once (default 1, in order)")
	f.StringVar(&ask.KeepResults, "keep-results", "", "keep results for `TIME` (default 1d)")
	f.StringVar(&rate, "rate", "", "hand out at most `N/TIME`, such as 100/1m")
	f.StringVar(&per, "rate-per", "", "count --rate for each `WHAT`: task or lane (default task)")
	f.StringVar(&batch, "batch", "", "hand out `N/TIME`: N together, or what there is when the first has waited for TIME")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if rate != "" {
			n, period, err := perTime("--rate", rate)
			if err != nil {
				return err
			}
			ask.Rate = &client.TaskRateRequest{Limit: n, Period: period, Per: per}
		} else if per != "" {
			return usageError("", "--rate-per needs --rate")
		}
		if batch != "" {
			n, wait, err := perTime("--batch", batch)
			if err != nil {
				return err
			}
			ask.Batch = &client.TaskBatchRequest{Size: n, Wait: wait}
		}
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		t, err := c.DeclareTask(cmd.Context(), args[0], ask)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "task %s declared\n", t.Name)
		return err
	}
	return cmd
}

// perTime reads a number and a time, such as 100/1m.
func perTime(flag, text string) (n int, time string, err error) {
	number, time, ok := strings.Cut(text, "/")
	if n, err = strconv.Atoi(number); err != nil || !ok || n < 1 || time == "" {
		return 0, "", usageError("Such as "+flag+" 100/1m.", "%s must be a number, a slash and a time", flag)
	}
	return n, time, nil
}
