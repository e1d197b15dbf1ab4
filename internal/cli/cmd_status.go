package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// needsAttention is the status of a lane that waits for a person.
const needsAttention = "Needs attention"

func newStatusCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show what needs attention",
		Long: "Shows whether the server is working, and which workflows, sources and schedules need\n" +
			"attention. The exit code is 0 if nothing does and 1 if something does, for use in scripts\n" +
			"and monitoring. Jobs that have failed are counted, but do not affect the exit code.",
		Example: "  pawl status\n" +
			"  pawl status -o json\n" +
			"  pawl status >/dev/null || echo 'Pawl needs attention'",
		GroupID: groupLook, Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := addSettingFlags(cmd, forClient)
	out := addOutputFlag(cmd, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := flags.connect(p)
		if err != nil {
			return err
		}
		defer c.Close()
		s, err := readStatus(cmd, c)
		if err != nil {
			return err
		}
		if err := s.write(p, out, time.Now()); err != nil {
			return err
		}
		if trouble := s.trouble(); trouble != "" {
			return &pawl.Error{Code: pawl.CodeInternal, Msg: trouble}
		}
		return nil
	}
	return cmd
}

// status is how a whole server does.
type status struct {
	Ready      bool              `json:"ready"`
	Checks     map[string]string `json:"checks"`
	Lanes      map[string]int    `json:"lanes"`     // how many have each status
	Attention  []json.RawMessage `json:"attention"` // the lanes that need a person
	FailedJobs *int              `json:"failedJobs"`

	Halted *client.ReadinessHalt `json:"halted,omitempty"` // absent unless everything is
}

// mostFailed is how many failed jobs are counted.
const mostFailed = 1000

func readStatus(cmd *cobra.Command, c *client.Client) (status, error) {
	s := status{Lanes: map[string]int{}, Attention: []json.RawMessage{}}
	ready, err := c.Ready(cmd.Context())
	if err != nil {
		return s, err
	}
	s.Checks, s.Ready, s.Halted = ready.Checks, ready.Status == "ok", ready.Halted
	items, _, err := c.List(cmd.Context(), client.LanesPath, nil, 0)
	if err != nil {
		return s, err
	}
	for _, raw := range items {
		var l client.Lane
		if err := json.Unmarshal(raw, &l); err != nil {
			return s, fmt.Errorf("read lane: %w", err)
		}
		s.Lanes[l.Status]++
		if l.Status == needsAttention {
			s.Attention = append(s.Attention, raw)
		}
	}
	failed, _, err := c.List(cmd.Context(), client.JobsPath, url.Values{"state": {client.JobFailed}}, mostFailed)
	if pawl.ErrorCode(err) == pawl.CodeForbidden { // a token for lanes only is told of lanes only
		return s, nil
	}
	n := len(failed)
	s.FailedJobs = &n
	return s, err
}

// trouble says what needs a person, empty if nothing does.
func (s status) trouble() string {
	var parts []string
	if !s.Ready {
		parts = append(parts, "the server cannot do its work")
	}
	if n := len(s.Attention); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s %s attention", n, plural(s.all(), "lane"), map[bool]string{true: "needs", false: "need"}[n == 1]))
	}
	return strings.Join(parts, ", and ")
}

func (s status) all() (n int) {
	for _, count := range s.Lanes {
		n += count
	}
	return n
}

func (s status) write(p *Process, out *outputFlag, now time.Time) error {
	if out.machine() {
		raw, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		return writeMachine(p.Stdout, out.format, raw)
	}
	d := newDescription(now)
	for _, name := range slices.Sorted(maps.Keys(s.Checks)) {
		if !s.Ready {
			d.line(name, s.Checks[name])
		}
	}
	if s.Halted != nil {
		d.say("Everything has been halted since %s; lift it with: pawl unhalt", pawl.FormatTime(s.Halted.Since.Time))
	}
	if s.trouble() == "" {
		d.say("Nothing needs attention: %s.", s.counted())
	}
	if n := s.FailedJobs; n != nil && *n > 0 {
		d.say("%s failed for good: pawl get jobs --state failed", plural(*n, "job"))
	}
	if _, err := io.WriteString(p.Stdout, d.String()); err != nil || len(s.Attention) == 0 {
		return err
	}
	var rows [][]string
	for _, raw := range s.Attention {
		var l client.Lane
		if err := json.Unmarshal(raw, &l); err != nil {
			return fmt.Errorf("read lane: %w", err)
		}
		rows = append(rows, []string{l.Kind, l.Name, laneActivity(l, now)})
	}
	p.say("Ask with: pawl why NAME")
	return newSheet(p, []column{{title: "kind"}, {title: "name", flex: true, least: 16}, {title: "why", flex: true, least: 24}}).write(p.Stdout, rows, true)
}

// counted tells how many lanes have which status.
func (s status) counted() string {
	parts := []string{plural(s.all(), "lane")}
	for _, word := range slices.Sorted(maps.Keys(s.Lanes)) {
		parts = append(parts, fmt.Sprintf("%d %s", s.Lanes[word], strings.ToLower(word)))
	}
	return strings.Join(parts, ", ")
}
