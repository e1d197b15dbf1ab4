package quotastore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlrun/pawl/internal/store"
)

// DomainCalls is the page of one domain in the book of calls.
type DomainCalls struct {
	Domain       string
	WindowStart  time.Time
	Count        int           // calls in the window
	BlockedUntil time.Time     // the other side asked not to be called before; zero if it did not
	Remote       RemoteAccount // what the other side said last
	UpdatedAt    time.Time
}

// RemoteAccount is what a server told about its own window. Nil and zero are
// what it did not tell.
type RemoteAccount struct {
	Limit, Left *int64
	ResetAt     time.Time
}

// CallLimit bounds the calls of one domain: so many in a period that begins
// with the first of them.
type CallLimit struct {
	Calls  int
	Period time.Duration
}

const callColumns = `domain, window_start, count, blocked_until, remote_limit, remote_left, remote_reset, updated_at`

func scanCalls(row store.Row) (DomainCalls, error) {
	var c DomainCalls
	var start, updated int64
	var blocked, reset *int64
	if err := row.Scan(&c.Domain, &start, &c.Count, &blocked, &c.Remote.Limit, &c.Remote.Left, &reset, &updated); err != nil {
		return DomainCalls{}, err
	}
	c.WindowStart, c.BlockedUntil, c.UpdatedAt = store.FromMillis(start), store.FromNullMillis(blocked), store.FromMillis(updated)
	c.Remote.ResetAt = store.FromNullMillis(reset)
	return c, nil
}

// GetCalls reads the page of a domain. One that was never written is empty: a
// domain without a page is not a fault.
func (tx Tx) GetCalls(ctx context.Context, domain string) (DomainCalls, error) {
	c, err := scanCalls(tx.QueryRow(ctx, `select `+callColumns+` from rate_limiter_state where domain = $1`, domain))
	if errors.Is(err, store.ErrNoRow) {
		return DomainCalls{Domain: domain}, nil
	}
	if err != nil {
		return DomainCalls{}, fmt.Errorf("read calls: %w", err)
	}
	return c, nil
}

// takeCall counts one call if there is room for it, as one statement: whoever
// comes at the same time waits for the row and sees the count of the others.
// A window that begins more than a period from now was written by a clock that
// has been put back since; it begins now, and its count is kept.
const takeCall = `insert into rate_limiter_state as s (domain, window_start, count, updated_at) values ($1, $2, 1, $2)
	on conflict (domain) do update set
		count = case when s.window_start <= $3 then 1 else s.count + 1 end,
		window_start = case when s.window_start <= $3 or s.window_start > $4 then $2 else s.window_start end,
		updated_at = $2
	where (s.blocked_until is null or s.blocked_until <= $2) and (s.window_start <= $3 or s.count < $5)
	returning ` + callColumns

// TakeCall counts a call to a domain unless its limit is reached or it asked
// for rest. It returns the page of the domain as it is afterwards.
func (tx Tx) TakeCall(ctx context.Context, domain string, limit CallLimit) (taken bool, c DomainCalls, err error) {
	if err := store.CheckText("count a call", "domain", domain); err != nil {
		return false, DomainCalls{}, err
	}
	c, err = scanCalls(tx.QueryRow(ctx, takeCall, domain, store.Millis(tx.Now), store.Millis(tx.Now.Add(-limit.Period)), store.Millis(tx.Now.Add(limit.Period)), limit.Calls))
	switch {
	case err == nil:
		return true, c, nil
	case !errors.Is(err, store.ErrNoRow):
		return false, DomainCalls{}, fmt.Errorf("count a call: %w", err)
	}
	c, err = tx.GetCalls(ctx, domain)
	return false, c, err
}

// NoteCalls writes what a server told about its window, and until when it
// wants to be left alone. Of two such instants the later one holds, unless it
// is after the latest that can be right: then a clock was put back.
func (tx Tx) NoteCalls(ctx context.Context, c DomainCalls, latest time.Time) error {
	if err := store.CheckText("note calls", "domain", c.Domain); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `insert into rate_limiter_state as s (`+callColumns+`) values ($1, $2, 0, $3, $4, $5, $6, $2)
		on conflict (domain) do update set
			blocked_until = case
				when excluded.blocked_until is null then s.blocked_until
				when s.blocked_until > excluded.blocked_until and s.blocked_until <= $7 then s.blocked_until
				else excluded.blocked_until end,
			remote_limit = coalesce(excluded.remote_limit, s.remote_limit),
			remote_left = coalesce(excluded.remote_left, s.remote_left),
			remote_reset = coalesce(excluded.remote_reset, s.remote_reset),
			updated_at = excluded.updated_at`,
		c.Domain, store.Millis(tx.Now), store.NullMillis(c.BlockedUntil), c.Remote.Limit, c.Remote.Left, store.NullMillis(c.Remote.ResetAt), store.Millis(latest))
	if err != nil {
		return fmt.Errorf("note calls: %w", err)
	}
	return nil
}

// RepairCalls puts right what only a clock that was put back since can have
// written: a block past the latest instant that can be right ends there, and
// a window that begins after the given one begins now.
func (tx Tx) RepairCalls(ctx context.Context, domain string, latestBlock, latestStart time.Time) error {
	_, err := tx.Exec(ctx, `update rate_limiter_state set
			blocked_until = case when blocked_until > $3 then $3 else blocked_until end,
			window_start = case when window_start > $4 then $2 else window_start end,
			updated_at = $2
		where domain = $1 and (blocked_until > $3 or window_start > $4)`,
		domain, store.Millis(tx.Now), store.Millis(latestBlock), store.Millis(latestStart))
	if err != nil {
		return fmt.Errorf("fix calls: %w", err)
	}
	return nil
}
