package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// changeSlot asks for a change of one slot: retry or skip.
func changeSlot(cmd *cobra.Command, p *Process, flags *settingFlags, verb string, args []string) error {
	if len(args) != 2 {
		return usageError(fmt.Sprintf("Usage: pawl %s slot SCHEDULE INSTANT", verb), "a slot is named by its schedule and its instant")
	}
	at, err := readInstant("INSTANT", args[1], time.Local, time.Now())
	if err != nil {
		return err
	}
	c, err := flags.connect(p)
	if err != nil {
		return err
	}
	defer c.Close()
	path, err := scheduleKind().locateOne(cmd.Context(), c, args[0])
	if err != nil {
		return err
	}
	instant := pawl.FormatTime(at)
	raw, err := c.Post(cmd.Context(), path+"/slots/"+url.PathEscape(instant)+"/"+verb, nil)
	if err != nil {
		return err
	}
	var slot client.Slot
	if err := json.Unmarshal(raw, &slot); err != nil {
		return fmt.Errorf("read slot: %w", err)
	}
	said := "will run again"
	switch {
	case verb == "skip" && slot.Status == "skipped":
		said = "will not run"
	case verb == "skip":
		said = "is left as it is: " + slot.Status
	}
	_, err = fmt.Fprintf(p.Stdout, "slot %s of schedule %s %s\n", instant, args[0], said)
	return err
}
