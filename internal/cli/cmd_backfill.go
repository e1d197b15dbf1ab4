package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

func newBackfillCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "backfill SCHEDULE --from TIME --to TIME", Short: "Run past slots of a schedule that did not run",
		Long: "Runs the slots of a schedule from --from up to, but not including, --to that have not run,\n" +
			"and with --include failed those that failed, too.\n" +
			"The command shows the plan and its estimated cost, and asks for confirmation before anything\n" +
			"runs. Then it shows progress until the backfill is done. Ctrl-C only stops the display: the\n" +
			"backfill continues until you use --pause or --cancel.\n\n" +
			"Slots run the graph that the schedule had at the time. If the schedule's grant does not\n" +
			"cover that graph, the plan says so; use --grant to run all slots of the plan under another\n" +
			"of your grants.",
		Example: "  pawl backfill morning-poet --from 2026-03-01 --to 2026-03-08\n" +
			"  pawl backfill morning-poet --from 2026-03-01 --to 2026-03-08 --per-minute 60 --yes\n" +
			"  pawl backfill morning-poet --from 2026-03-01 --to 2026-03-08 --grant 0192f0c1-6a1e-7b3c-8d2e-3f1a2b4c5d6e\n" +
			"  pawl backfill --cancel 0192f0c1-5b7e-7c3a-9d2e-3f1a2b4c5d6e",
		GroupID: groupChange, Args: takes(0, 1),
	}
	b := &backfiller{p: p, flags: addSettingFlags(cmd, forClient), moves: map[string]*string{}}
	cmd.ValidArgsFunction = completeName(p, b.flags, scheduleKind())
	cmd.Flags().StringVar(&b.from, "from", "", "start with the slot at `TIME`, such as 2026-03-01 or 2026-03-01T09:00:00Z")
	cmd.Flags().StringVar(&b.to, "to", "", "end before `TIME` (not in the future)")
	cmd.Flags().IntVar(&b.perMinute, "per-minute", 0, "start at most `N` slots a minute (default 10)")
	cmd.Flags().StringVar(&b.grant, "grant", "", "run the slots under the grant `ID` (default the schedule's grant)")
	cmd.Flags().StringArrayVar(&b.include, "include", nil, "also run slots that `WHICH`: failed (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("include", cobra.FixedCompletions([]string{includeFailed}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	cmd.Flags().BoolVarP(&b.yes, "yes", "y", false, "skip the confirmation prompt")
	for _, verb := range []string{"pause", "resume", "cancel"} {
		b.moves[verb] = cmd.Flags().String(verb, "", verb+" the backfill with this `ID`")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return b.run(cmd, args) }
	return cmd
}

// includeFailed are the slots that ended with an error.
const includeFailed = "failed"

// backfiller is one call of backfill.
type backfiller struct {
	p         *Process
	flags     *settingFlags
	from, to  string
	perMinute int
	grant     string // id
	include   []string
	yes       bool
	moves     map[string]*string // ids, by what is to be done

	client *client.Client
	name   string // of the schedule
}

func (b *backfiller) run(cmd *cobra.Command, args []string) (err error) {
	verb, id := "", ""
	for name, value := range b.moves {
		if *value == "" {
			continue
		}
		if verb != "" || len(args) > 0 || b.from != "" || b.to != "" || b.grant != "" {
			return usageError("Usage: pawl backfill --"+name+" ID", "--%s stands alone", name)
		}
		verb, id = name, *value
	}
	var ask map[string]any
	if verb == "" {
		if ask, err = b.request(cmd, args, time.Now()); err != nil {
			return err
		}
	}
	if b.client, err = b.flags.connect(b.p); err != nil {
		return err
	}
	defer b.client.Close()
	if verb != "" {
		return b.move(cmd.Context(), verb, id)
	}
	return b.begin(cmd.Context(), ask)
}

// request reads what is to be planned.
func (b *backfiller) request(cmd *cobra.Command, args []string, now time.Time) (map[string]any, error) {
	if len(args) == 0 || b.from == "" || b.to == "" {
		return nil, usageError("Usage: "+cmd.UseLine(), "a backfill needs a schedule, --from and --to")
	}
	from, err := readInstant("--from", b.from, time.Local, now)
	if err != nil {
		return nil, err
	}
	to, err := readInstant("--to", b.to, time.Local, now)
	if err != nil {
		return nil, err
	}
	ask := map[string]any{"from": pawl.FormatTime(from), "to": pawl.FormatTime(to)}
	switch given := cmd.Flags().Changed("per-minute"); {
	case !from.Before(to):
		return nil, usageError("", "--from must be before --to")
	case given && b.perMinute < 1:
		return nil, usageError("", "--per-minute: %d is below one", b.perMinute)
	case given:
		ask["perMinute"] = b.perMinute
	}
	if b.grant != "" {
		ask["grantId"] = b.grant
	}
	for _, which := range b.include {
		if which != includeFailed {
			return nil, usageError("Write --include failed.", "--include: %q is not among the slots that can be included", which)
		}
		ask["include"] = []string{includeFailed}
	}
	b.name = args[0]
	return ask, nil
}

// move pauses, resumes or cancels a backfill.
func (b *backfiller) move(ctx context.Context, verb, id string) error {
	path, err := backfillKind().pathOf(id)
	if err != nil {
		return err
	}
	if _, err := b.client.Post(ctx, path+"/"+verb, nil); err != nil {
		return err
	}
	said := map[string]string{"pause": "paused; slots that have begun go on", "resume": "resumed", "cancel": "cancelled; slots that have begun go on"}
	_, err = fmt.Fprintf(b.p.Stdout, "backfill %s %s\n", id, said[verb])
	return err
}

// begin plans a backfill, asks, lets it begin and follows it.
func (b *backfiller) begin(ctx context.Context, ask map[string]any) error {
	path, err := scheduleKind().locateOne(ctx, b.client, b.name)
	if err != nil {
		return err
	}
	raw, err := b.client.Post(ctx, path+"/backfill", ask)
	if err != nil {
		return err
	}
	var plan client.Backfill
	if err := json.Unmarshal(raw, &plan); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	place := client.BackfillsPath + "/" + url.PathEscape(plan.ID)
	if _, err := fmt.Fprint(b.p.Stderr, planWords(b.name, plan, time.Now())); err != nil {
		return err
	}
	if plan.Total == 0 {
		b.giveUp(ctx, place)
		_, err := fmt.Fprintf(b.p.Stdout, "schedule %s has nothing to run in that time\n", b.name)
		return err
	}
	if !b.yes {
		if err := confirm(ctx, b.p, fmt.Sprintf("Run %s of %s?", plural(plan.Total, "slot"), b.name)); err != nil {
			b.giveUp(ctx, place)
			return err
		}
	}
	if _, err := b.client.Post(ctx, place+"/confirm", map[string]string{"hash": plan.Hash}); err != nil {
		return err
	}
	return b.follow(ctx, place, plan)
}

// giveUp cancels a plan that nobody wants. One that stays does no harm: it
// does not begin by itself.
func (b *backfiller) giveUp(ctx context.Context, place string) {
	_, _ = b.client.Post(context.WithoutCancel(ctx), place+"/cancel", nil)
}

// planShown is how many slots of a plan are told one by one.
const planShown = 5

// planWords tell what a backfill would do.
func planWords(schedule string, plan client.Backfill, now time.Time) string {
	d := newDescription(now)
	d.say("Backfill of the schedule %s:", schedule)
	d.line("From", pawl.FormatTime(plan.From.Time))
	d.line("To", pawl.FormatTime(plan.To.Time)+" (not itself)")
	d.line("Slots", fmt.Sprint(plan.Total))
	d.line("Left out", fmt.Sprintf("%d that ran, or wait, already", plan.Skipped))
	if plan.Before > 0 {
		d.line("Older", fmt.Sprintf("%s from before the schedule was made, run as it was at first", plural(plan.Before, "slot")))
	}
	d.line("Grant", string(plan.GrantID))
	sayUncovered(d, plan)
	d.line("Pace", fmt.Sprintf("%d a minute: about %s", plan.PerMinute, compact(planTime(plan))))
	cost := "unknown: the schedule has not run yet"
	switch {
	case plan.EstimateUSD == nil:
	case *plan.EstimateUSD == 0:
		cost = "0"
	default:
		cost = "about " + usd(*plan.EstimateUSD) + ", by its last runs"
	}
	d.line("Cost", cost)
	var instants []string
	for i, slot := range plan.Slots {
		if i == planShown {
			instants = append(instants, fmt.Sprintf("and %d more", len(plan.Slots)-planShown))
			break
		}
		instants = append(instants, pawl.FormatTime(slot.At.Time))
	}
	d.line("Instants", strings.Join(instants, ", "))
	d.line("Id", plan.ID)
	return d.String()
}

// sayUncovered tells which slots would be passed over because of the grant, and
// how to have them run.
func sayUncovered(d *description, plan client.Backfill) {
	for _, u := range plan.Uncovered {
		d.line("Not covered", fmt.Sprintf("%s of %s would be skipped: %s", plural(u.Slots, "slot"), u.GraphID, u.Message))
	}
	if len(plan.Uncovered) == 0 {
		return
	}
	var graphs []string
	for _, slot := range plan.Slots {
		if flag := "--graph " + slot.GraphID; !slices.Contains(graphs, flag) {
			graphs = append(graphs, flag)
		}
	}
	d.say("To run them, plan with --grant ID of a grant that covers all: pawl grant create %s", strings.Join(graphs, " "))
}

// planTime is how long it takes to start all slots of a plan.
func planTime(plan client.Backfill) time.Duration {
	return time.Duration(plan.Total) * time.Minute / time.Duration(max(1, plan.PerMinute))
}
