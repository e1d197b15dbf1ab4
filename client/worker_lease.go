package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// beat asks for more time for all jobs in hand, three times in a lease.
func (s *shift) beat(ctx context.Context) {
	asked := time.Now()
	for {
		s.mu.Lock()
		lease := s.lease
		s.mu.Unlock()
		pause(ctx, lease/3)
		if ctx.Err() != nil {
			return
		}
		if time.Since(asked) > time.Minute { // somebody may have declared another
			asked = time.Now()
			_ = s.readLease(ctx) // as it was, then
		}
		if err := s.extend(ctx, lease); err != nil && ctx.Err() == nil {
			s.Log.Warn("ask for more time", "task", s.Task, "err", err)
		}
		s.stopLate(time.Now())
	}
}

// stopLate tells jobs to end for which nobody answered for a whole lease.
func (s *shift) stopLate(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hand {
		if !now.Before(h.until) {
			h.stopLocked(ErrLeaseLost)
		}
	}
}

// extend asks once, and tells jobs that are not this worker's any more to end.
func (s *shift) extend(ctx context.Context, lease time.Duration) error {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.hand))
	s.mu.Unlock()
	var failed error
	for some := range slices.Chunk(all, extendsAtOnce) {
		failed = errors.Join(failed, s.extendSome(ctx, lease, some))
	}
	return failed
}

func (s *shift) extendSome(ctx context.Context, lease time.Duration, some []*inHand) error {
	r := ExtendRequest{Items: make([]LeaseRequest, len(some))}
	asked := make(map[string]*inHand, len(some)) // by then another lease of the job may be in hand
	for i, h := range some {
		r.Items[i] = LeaseRequest{h.job.ID, h.job.LeaseToken}
		asked[h.job.ID] = h
	}
	began := time.Now()
	var answer Leases
	if err := s.post(ctx, max(time.Second, lease/3), "extend", r, &answer); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range answer.Items {
		h := asked[l.ID]
		switch {
		case h == nil:
		case l.OK:
			h.until = began.Add(lease)
		case l.Code == LeaseCancelled:
			h.stopLocked(ErrCancelled)
		default:
			h.stopLocked(ErrLeaseLost)
		}
	}
	return nil
}

// tell says how jobs ended, as many at once as there are, until no more come.
func (s *shift) tell(ctx context.Context) {
	for first := range s.ends {
		batch := []end{first}
		for len(batch) < endsAtOnce {
			var e end
			var ok bool
			select {
			case e, ok = <-s.ends:
			default:
			}
			if !ok {
				break
			}
			batch = append(batch, e)
		}
		s.mu.Lock()
		batch = slices.DeleteFunc(batch, func(e end) bool { return s.hand[e.job.ID] != e.inHand }) // its lease was lost, and it was claimed again
		s.mu.Unlock()
		s.tellBatch(ctx, batch)
		s.mu.Lock()
		for _, e := range batch {
			if s.hand[e.job.ID] == e.inHand {
				delete(s.hand, e.job.ID)
			}
		}
		s.mu.Unlock()
	}
}

func (s *shift) tellBatch(ctx context.Context, batch []end) {
	var done []CompletedRequest
	var failed FailRequest
	for _, e := range batch {
		if e.err == nil {
			done = append(done, CompletedRequest{e.job.ID, e.job.LeaseToken, e.result})
		} else {
			failed.Items = append(failed.Items, failedRequest(e))
		}
	}
	for len(done) > 0 {
		n, size := 0, 0
		for n < len(done) && (n == 0 || size+len(done[n].Result) <= endsSize) {
			size += len(done[n].Result)
			n++
		}
		failed.Items = append(failed.Items, s.complete(ctx, done[:n])...)
		done = done[n:]
	}
	if len(failed.Items) > 0 {
		_, _ = s.insist(ctx, "fail", failed) // it was logged
	}
}

// complete says that jobs were done, and returns those whose result is not taken: they
// fail for good, because they would have it again.
func (s *shift) complete(ctx context.Context, items []CompletedRequest) (failed []FailedRequest) {
	leases, err := s.insist(ctx, "complete", CompleteRequest{items})
	if len(items) == 1 && pawl.ErrorCode(err) == pawl.CodeTooLarge { // for a request of its own
		leases = []Lease{{ID: items[0].ID, Code: LeaseTooLarge, Message: NullString(err.Error())}}
	}
	for _, l := range leases {
		if l.Code != LeaseTooLarge {
			continue
		}
		for _, item := range items {
			if item.ID == l.ID {
				failed = append(failed, FailedRequest{ID: item.ID, LeaseToken: item.LeaseToken, Error: WorkerErrorRequest{string(l.Message), ErrorPermanent}})
			}
		}
	}
	return failed
}

func failedRequest(e end) FailedRequest {
	r := FailedRequest{ID: e.job.ID, LeaseToken: e.job.LeaseToken, Error: WorkerErrorRequest{Message: e.err.Error()}}
	if len(r.Error.Message) > maxErrorText {
		r.Error.Message = r.Error.Message[:maxErrorText]
	}
	if f, ok := errors.AsType[*failure](e.err); ok {
		r.Error.Class = f.class
		if f.after != nil {
			r.RetryAfter = strconv.FormatInt(int64((*f.after+time.Second-1)/time.Second), 10) + "s"
		}
	}
	return r
}

// maxErrorText is how much of an error is sent, in bytes.
const maxErrorText = 16 << 10

// insist says something until it is answered, or refused. Saying it twice does no harm.
func (s *shift) insist(ctx context.Context, verb string, body any) ([]Lease, error) {
	begin := time.Now()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		var answer Leases
		err := s.post(ctx, answerTimeout, verb, body, &answer)
		switch {
		case err == nil:
			for _, l := range answer.Items {
				if !l.OK && l.Code != LeaseTooLarge {
					s.Log.Warn("what a job came to does not count", "task", s.Task, "job", l.ID, "code", string(l.Code))
				}
			}
			return answer.Items, nil
		case refused(err) || time.Since(begin) > endsFor:
			s.Log.Error("say how jobs ended; they come back when their leases end", "task", s.Task, "err", err)
			return nil, err
		}
		s.Log.Warn("say how jobs ended; it is tried again", "task", s.Task, "after", wait, "err", err)
		pause(ctx, wait)
	}
}
