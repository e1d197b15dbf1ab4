package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// followEvery is how often a backfill is looked at. The server starts at most
// ten slots a second.
const followEvery = 500 * time.Millisecond

// follow shows how far a backfill has come until it is over, or until somebody
// interrupts the showing, which is no failure.
func (b *backfiller) follow(ctx context.Context, place string, plan client.Backfill) error {
	bar := progressBar{p: b.p}
	defer bar.end()
	again := time.NewTicker(followEvery)
	defer again.Stop()
	for {
		now, err := b.look(ctx, place)
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return b.leave(&bar, plan.ID)
		}
		if err != nil {
			return err
		}
		bar.show(now)
		switch now.State {
		case client.BackfillDone:
			bar.end()
			return b.conclude(now)
		case client.BackfillCancelled:
			bar.end()
			return &pawl.Error{Code: pawl.CodeConflict, Msg: fmt.Sprintf("backfill %s was cancelled after %d of %s", now.ID, backfilled(now), plural(now.Total, "slot"))}
		}
		select {
		case <-ctx.Done():
			return b.leave(&bar, plan.ID)
		case <-again.C:
		}
	}
}

func (b *backfiller) look(ctx context.Context, place string) (now client.Backfill, err error) {
	raw, err := b.client.Get(ctx, place)
	if err != nil {
		return now, err
	}
	if err := json.Unmarshal(raw, &now); err != nil {
		return now, fmt.Errorf("read backfill: %w", err)
	}
	return now, nil
}

// leave tells that what runs goes on.
func (b *backfiller) leave(bar *progressBar, id string) error {
	bar.end()
	b.p.say("The backfill continues in the background.")
	b.p.say("Look at it with: pawl get backfill %s. End it with: pawl backfill --cancel %s", id, id)
	return nil
}

// conclude tells how it went; slots that failed make the command fail.
func (b *backfiller) conclude(now client.Backfill) error {
	_, err := fmt.Fprintf(b.p.Stdout, "backfill %s done: %d succeeded, %d failed, %d passed over\n", now.ID, now.Counts.Success, now.Counts.Error, now.Counts.Skipped)
	if err == nil && now.Counts.Error > 0 {
		err = &pawl.Error{Code: pawl.CodeInvalid, Msg: plural(now.Counts.Error, "slot") + " failed", Hint: "pawl get slots " + b.name + " --status error shows why."}
	}
	return err
}

// progressBar shows how far a backfill has come: on a terminal as a bar that
// grows in its line, elsewhere as a line for each change.
type progressBar struct {
	p     *Process
	last  string
	drawn bool // the line of the bar is not ended yet
}

const barWidth = 30 // columns

func (b *progressBar) show(now client.Backfill) {
	done := backfilled(now)
	words := fmt.Sprintf("%d of %s", done, plural(now.Total, "slot"))
	if now.Counts.Running > 0 {
		words += fmt.Sprintf(", %d running", now.Counts.Running)
	}
	if now.Counts.Error > 0 {
		words += fmt.Sprintf(", %d failed", now.Counts.Error)
	}
	if now.State == client.BackfillPaused {
		words += ", paused"
	}
	if words == b.last {
		return
	}
	b.last = words
	if !b.p.StderrTerminal {
		b.p.say("%s", words)
		return
	}
	full := barWidth * done / max(1, now.Total)
	_, _ = fmt.Fprintf(b.p.Stderr, "\r\x1b[K[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), words) // nobody is there to be told
	b.drawn = true
}

// end leaves the line of the bar, so that others can write.
func (b *progressBar) end() {
	if b.drawn {
		_, _ = fmt.Fprintln(b.p.Stderr) // as above
		b.drawn = false
	}
}
