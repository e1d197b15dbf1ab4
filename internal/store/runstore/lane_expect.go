package runstore

import (
	"context"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// SetExpect notes what is expected of a lane.
func (tx Tx) SetExpect(ctx context.Context, kind pawl.Kind, lane, expect string) error {
	if _, err := tx.Exec(ctx, `update lanes set expect = $3 where kind = $1 and lane = $2 and expect <> $3`, kind, lane, expect); err != nil {
		return fmt.Errorf("note what is expected of a lane: %w", err)
	}
	return nil
}

// SetExpected writes how a lane stands to what is expected of it, and its state.
func (tx Tx) SetExpected(ctx context.Context, l Lane) error {
	if _, err := tx.Exec(ctx, `update lanes set expected = $3, state = $4 where kind = $1 and lane = $2`, l.Kind, l.Lane, l.Expected, l.State); err != nil {
		return fmt.Errorf("note how a lane stands to what is expected: %w", err)
	}
	return nil
}

// ExpectingLanes reads up to limit lanes of which something is expected, or was when
// they were last judged, those after the given one.
func (tx Tx) ExpectingLanes(ctx context.Context, afterKind pawl.Kind, afterLane string, limit int) ([]Lane, error) {
	rows, err := tx.Query(ctx, `select `+laneColumns+` from lanes l where (expect <> '' or expected <> '') and (kind, lane) > ($1, $2)
		order by kind, lane limit $3`, afterKind, afterLane, limit)
	return store.ScanAll(rows, err, "read lanes with expectations", scanLane)
}

// LatestSuccess is when the newest of the last runs of a lane succeeded; zero if none
// did. Most lanes have one among a few, and no more than many are looked at. Runs of a
// schedule that are beside each other have lanes that begin with its.
func (tx Tx) LatestSuccess(ctx context.Context, kind pawl.Kind, lane string) (time.Time, error) {
	const few, many = 20, 1000
	where, args := `lane = $1 and kind = $3`, []any{lane, few, kind}
	if kind == pawl.KindSchedule {
		where, args = scheduleOfLane+` = $1 and kind = 'schedule'`, args[:2]
	}
	at, err := tx.latestAmong(ctx, where, args, few, many)
	if err != nil || kind != pawl.KindWorkflow {
		return store.FromNullMillis(at), err
	}
	of, err := tx.latestAmong(ctx, isPart+" and "+baseOfPart+` = $1`, args[:2], few, many)
	if err == nil && (at == nil || of != nil && *of > *at) {
		at = of
	}
	return store.FromNullMillis(at), err
}

// latestAmong is when the newest success among the last few runs was, or else among
// the last many; nil if there is none.
func (tx Tx) latestAmong(ctx context.Context, where string, args []any, few, many int) (at *int64, err error) {
	for _, args[1] = range []any{few, many} {
		err := tx.QueryRow(ctx, `select max(case when run_count > 1 then through_at else ended_at end) from (select status, ended_at, through_at, run_count from runs where `+where+` order by created_at desc, id desc limit $2) as latest
			where status = 'committed'`, args...).Scan(&at)
		if err != nil {
			return nil, fmt.Errorf("read the latest success: %w", err)
		}
		if at != nil {
			break
		}
	}
	return at, nil
}

// StoodWell reports whether a run of a handler that stands for a time in [from, to)
// succeeded. Slots tell it of schedules.
func (tx Tx) StoodWell(ctx context.Context, kind pawl.Kind, lane, handler string, from, to time.Time) (bool, error) {
	rows, err := tx.Query(ctx, `select 1 from runs where kind = $1 and lane = $2 and handler = $3 and scheduled_for is not null and kind <> 'schedule'
		and created_at >= $4 and scheduled_for >= $4 and scheduled_for < $5 and status = 'committed' limit 1`, kind, lane, handler, store.Millis(from), store.Millis(to))
	found, err := store.ScanAll(rows, err, "read runs of a day", func(row store.Scanner) (n int, err error) { return n, row.Scan(&n) })
	return len(found) > 0, err
}

// CountStarts counts the last runs, up to limit, that a handler began by its schedule
// at the instant or after, and those of them that began later than their time by more
// than late.
func (tx Tx) CountStarts(ctx context.Context, kind pawl.Kind, lane, handler string, since time.Time, limit int, late time.Duration) (starts, behind int, err error) {
	err = tx.QueryRow(ctx, `select count(*), coalesce(sum(case when created_at - scheduled_for > $6 then 1 else 0 end), 0) from (
		select created_at, scheduled_for from runs where kind = $1 and lane = $2 and handler = $3 and scheduled_for is not null and kind <> 'schedule'
		and created_at >= $4 and trigger = 'schedule' and retry_of is null order by created_at desc, id desc limit $5) as latest`,
		kind, lane, handler, store.Millis(since), limit, late.Milliseconds()).Scan(&starts, &behind)
	if err != nil {
		return 0, 0, fmt.Errorf("count starts: %w", err)
	}
	return starts, behind, nil
}
