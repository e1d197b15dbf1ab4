package expect

import (
	"context"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/terms"
	"github.com/pawlrun/pawl/internal/when"
)

// noted is how much of freshWithin a success may be newer than the noted one before
// it is noted again.
const noted = 4

// judgement is one look at one lane.
type judgement struct {
	Kind
	tx      *store.Tx
	row     runstore.Lane
	subject lane.Subject
	expect  *client.Expect
	was     terms.Standing
	now     terms.Standing
	count   bool // starts are counted; otherwise what was found last stands
}

// judge is the row of a lane as it should be now; the same if nothing changed. It
// only reads.
func (s *Service) judge(ctx context.Context, tx *store.Tx, l runstore.Lane, count bool) (runstore.Lane, lane.Subject, error) {
	k := s.kinds[l.Kind]
	if k == nil {
		return l, lane.Subject{}, nil
	}
	subject, err := k.Subject(ctx, tx, l)
	if err != nil {
		return l, subject, pawl.IgnoreNotFound(err)
	}
	j := &judgement{Kind: k, tx: tx, row: l, subject: subject, expect: terms.ParseExpect(l.Expect), was: terms.ParseStanding(l.Expected), count: count}
	if err := j.standing(ctx); err != nil {
		return l, subject, err
	}
	return lane.Restate(l, j.now), subject, nil
}

// standing finds how the lane stands now.
func (j *judgement) standing(ctx context.Context) error {
	if j.expect.Empty() {
		return nil
	}
	j.now = terms.Standing{Of: j.row.Expect, From: j.was.From, Resumed: j.was.Resumed, Success: j.was.Success, Done: j.was.Done}
	if j.was.Of != j.row.Expect {
		j.now.From, j.now.Resumed = j.tx.Now.UTC(), false
		j.count = true
	}
	if j.now.Rests = j.subject.Rests || j.subject.Ended(j.tx.Now); j.now.Rests {
		return nil
	}
	if j.was.Rests {
		j.now.From, j.now.Resumed = j.tx.Now.UTC(), true
	}
	if j.expect.FreshWithin != "" {
		j.add(j.fresh())
	}
	for _, one := range []struct {
		is    bool
		judge func(context.Context) (terms.Verdict, error)
	}{{j.expect.DoneBy != "", j.done}, {j.expect.Rows != "", j.rows}, {j.expect.OnTime != nil, j.onTime}} {
		if !one.is {
			continue
		}
		v, err := one.judge(ctx)
		if err != nil {
			return err
		}
		j.add(v)
	}
	return nil
}

// add keeps a verdict. What goes on not being met does so since it began.
func (j *judgement) add(v terms.Verdict) {
	if old := j.was.Find(v.Name); !v.Met && old.Name != "" && !old.Met {
		v.Since = old.Since
	}
	v.Since = v.Since.UTC().Truncate(time.Millisecond)
	j.now.Verdicts = append(j.now.Verdicts, v)
}

func (j *judgement) fresh() terms.Verdict {
	success := j.subject.Success
	if j.now.Success.After(success) {
		success = j.now.Success
	}
	within, _ := when.ParseInterval(j.expect.FreshWithin) // zero notes every one
	if success.Sub(j.now.Success) > within/noted {
		j.now.Success = success.UTC()
	}
	from := j.now.From
	if !success.IsZero() && !j.now.Resumed { // what is expected now holds for what was
		from = time.Time{}
	}
	return terms.JudgeFresh(j.expect, j.tx.Now, from, success)
}

func (j *judgement) done(ctx context.Context) (terms.Verdict, error) {
	begun, over := terms.Days(j.expect.DoneBy, j.subject.Zone, j.subject.Times(), j.tx.Now)
	for _, d := range []terms.Day{over, begun} { // that of today may be pruned before its deadline
		if d.Name == "" || d.Name <= j.now.Done {
			continue
		}
		ok, err := j.StoodWell(ctx, j.tx, j.subject, j.row, d.Start, d.End)
		if err != nil {
			return terms.Verdict{}, err
		}
		if ok {
			j.now.Done = d.Name
		}
	}
	return terms.JudgeDone(j.expect, j.subject.Zone, over, j.now.From, j.now.Done), nil
}

// rows judges the newest fetch of each handler that brings rows; the first that is
// not met stands for all.
func (j *judgement) rows(ctx context.Context) (v terms.Verdict, err error) {
	handlers := j.subject.Bring
	if len(handlers) == 0 {
		handlers = []string{""}
	}
	known := false
	for _, handler := range handlers {
		one, ok, err := j.rowsOf(ctx, handler)
		if err != nil || ok && !one.Met {
			return one, err
		}
		if ok {
			v, known = one, true
		}
	}
	if old := j.was.Find(terms.Rows); !known && old.Name != "" && j.was.Of == j.row.Expect {
		return old, nil // nothing is known that would change it
	}
	if !known {
		v = terms.NoRows(j.expect, j.subject.Kind)
	}
	return v, nil
}

// rowsOf judges the newest fetch of a handler, if it is known. While it goes on being
// unmet, what is usual is what was before that began: a source that stays empty does
// not make that its habit.
func (j *judgement) rowsOf(ctx context.Context, handler string) (v terms.Verdict, known bool, err error) {
	old := j.was.Find(terms.Rows)
	fetches, err := j.Fetches(ctx, j.tx, j.row, handler, j.tx.Now.Add(time.Millisecond), terms.UsualOf+1)
	if err != nil || len(fetches) == 0 {
		return old, false, err
	}
	newest := fetches[0]
	if (j.now.Resumed || newest.Untold) && newest.EndedAt.Before(j.now.From) { // nobody asked it to tell
		return old, false, nil
	}
	before := fetches[1:]
	if old.Name != "" && !old.Met {
		if before, err = j.Fetches(ctx, j.tx, j.row, handler, old.Since, terms.UsualOf+1); err != nil {
			return old, false, err
		}
		for len(before) > 0 && !before[0].EndedAt.Before(old.Since) {
			before = before[1:]
		}
	}
	var usual []int64
	for _, f := range before[:min(len(before), terms.UsualOf)] {
		if !f.Untold {
			usual = append(usual, f.Rows)
		}
	}
	return terms.JudgeRows(j.expect, terms.Brought{Kind: j.subject.Kind, Handler: handler, At: newest.EndedAt, Rows: newest.Rows, Untold: newest.Untold}, usual), true, nil
}

func (j *judgement) onTime(ctx context.Context) (terms.Verdict, error) {
	if old := j.was.Find(terms.OnTime); old.Name != "" && !j.count {
		return old, nil
	}
	since := j.tx.Now.Add(-terms.StartsWithin)
	if j.now.Resumed && j.now.From.After(since) {
		since = j.now.From
	}
	starts, late, err := j.CountStarts(ctx, j.tx, j.subject, j.row, since, terms.StartsLooked)
	return terms.JudgeOnTime(j.expect, j.tx.Now, starts, late), err
}
