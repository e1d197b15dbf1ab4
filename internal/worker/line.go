package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

// group is claims for the same jobs.
type group struct {
	task  string
	owner string // empty is everybody's
}

// line is the claims of a group at this process, in the order they came, and what
// is known for them. One goroutine looks for all of them, and what it finds is
// handed out along the line. It is there as long as somebody waits; the rest of the
// line stays a little longer, so that a worker that comes back need not look again.
// All of it is guarded by the service's mu.
type line struct {
	of       group
	waiters  []*waiter
	attended bool          // a goroutine looks for it
	tick     chan struct{} // wakes it; has room for one sign

	looked  time.Time // when the last look began; zero if there was none that counts
	news    bool      // something happened since
	blocked bool      // jobs were due which it did not take, because their lanes were full
	next    time.Time // the earliest instant at which there may be something; zero is never
	known   bool      // next is what the database says
	soon    time.Time // the earliest instant that was told during a look; zero if none was
	looking bool      // one looks now

	seen map[store.Lane]bool // of who looks: the lanes that were looked at for nothing
}

// waiter is a claim.
type waiter struct {
	Request
	until  time.Time
	answer chan answer // has room for the one that it gets
	looked bool        // somebody looked for it
	party  bool        // is looked for now
}

// answer is what a claim gets.
type answer struct {
	jobs []store.Claimed
	err  error
}

// enter puts a claim in line.
func (s *Service) enter(r Request) (*line, *waiter, error) {
	r.Limit = max(r.Limit, 0)
	w := &waiter{Request: r, until: time.Now().Add(r.Wait), answer: make(chan answer, 1)}
	of := group{task: r.Task}
	if r.Owner != nil {
		of.owner = *r.Owner
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting >= s.limits.waiting {
		return nil, nil, &pawl.Error{Code: pawl.CodeUnavailable, Reason: "too_many_claims", Op: "claim", Msg: fmt.Sprintf("%d claims are waiting already", s.waiting), Hint: "Claim more jobs at once with fewer workers."}
	}
	s.waiting++
	l := s.lines[of]
	if l == nil {
		l = &line{of: of, tick: make(chan struct{}, 1), seen: map[store.Lane]bool{}}
		s.lines[of] = l
	}
	w.looked = r.Wait > 0 && !s.lookAt(l).Before(time.Now())
	l.waiters = append(l.waiters, w)
	if !l.attended && !s.closed {
		l.attended = true
		go s.attend(l)
	}
	signal(l)
	return l, w, nil
}

func signal(l *line) {
	select {
	case l.tick <- struct{}{}:
	default:
	}
}

// leave takes a claim out of line. If it was answered meanwhile, that is returned.
func (s *Service) leave(l *line, w *waiter) (a answer, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case a := <-w.answer:
		return a, true
	default:
	}
	s.remove(l, w)
	return answer{}, false
}

// remove is called with mu held.
func (s *Service) remove(l *line, w *waiter) {
	n := len(l.waiters)
	l.waiters = slices.DeleteFunc(l.waiters, func(o *waiter) bool { return o == w })
	if s.waiting -= n - len(l.waiters); len(l.waiters) == 0 {
		signal(l)
	}
}

// reply is called with mu held.
func (s *Service) reply(l *line, w *waiter, a answer) {
	w.answer <- a
	s.remove(l, w)
}

// Wake tells that a task may have something for those who wait.
func (s *Service) Wake(task string, c queue.Chance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, l := range s.lines {
		if of.task == task {
			l.hear(c, time.Now())
		}
	}
}

// hear notes what may have come for the line.
func (l *line) hear(c queue.Chance, now time.Time) {
	switch {
	case c.Freed && !l.blocked && !l.looking && l.known: // nobody waits for that lane
		return
	case c.At.After(now):
		l.next, l.soon = earlier(l.next, c.At), earlier(l.soon, c.At)
		l.news = l.news || !l.known
	default:
		l.news = true
		l.known = l.known && !c.At.IsZero()
	}
	signal(l)
}

// earlier is the first of two instants, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// lookAt is when a line has to be looked at for those who wait. It is called with
// mu held.
func (s *Service) lookAt(l *line) time.Time {
	if l.news || l.looked.IsZero() {
		return time.Time{}
	}
	return earlier(l.looked.Add(s.limits.poll), l.next)
}

// attend looks for a line until nobody is in it.
func (s *Service) attend(l *line) {
	for {
		p, wait, there := s.party(l)
		switch {
		case !there:
			return
		case p != nil:
			s.look(l, p)
		default:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-l.tick:
			case <-s.end:
			}
			timer.Stop()
		}
	}
}

// party is those for whom one look is.
type party struct {
	waiters   []*waiter
	hands     []store.Hand
	began     time.Time
	wantsNext bool // it is not known when the next look is due
}

// party decides what the one who looks for a line does next: look for some of it, or
// wait. It reports whether anybody is there.
func (s *Service) party(l *line) (p *party, wait time.Duration, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(l.waiters) == 0 || s.closed {
		l.attended = false
		return nil, 0, false
	}
	p = &party{began: time.Now()}
	hasty := slices.ContainsFunc(l.waiters, func(w *waiter) bool { return !w.looked })
	if at := s.lookAt(l); !hasty && at.After(p.began) {
		return nil, at.Sub(p.began), true
	}
	room := MaxClaim
	for _, w := range l.waiters {
		n := max(1, w.Limit)
		if n > room && len(p.waiters) > 0 {
			break
		}
		room -= n
		w.party = true
		p.waiters, p.hands = append(p.waiters, w), append(p.hands, store.Hand{Worker: w.Worker, Limit: w.Limit})
	}
	p.wantsNext = !l.known || !l.next.IsZero() && !l.next.After(p.began)
	l.news, l.soon, l.looking = false, time.Time{}, true
	return p, 0, true
}

// look looks for some of a line. It goes on if they leave meanwhile: what it finds then
// is given back, and would wait for the end of its lease if nobody knew what became of
// the transaction.
func (s *Service) look(l *line, p *party) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	found, err := s.tryClaim(ctx, l.of, p.hands, p.wantsNext, l.seen)
	if orphans := s.serve(l, p, found, err); len(orphans) > 0 {
		s.giveBack(ctx, l.of, orphans)
	}
}

// serve hands out what a look found, and returns what nobody is there for.
func (s *Service) serve(l *line, p *party, found claimed, err error) (orphans []store.Claimed) {
	shares := make([][]store.Claimed, len(p.waiters))
	for _, j := range found.jobs {
		shares[j.Hand] = append(shares[j.Hand], j)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i, w := range p.waiters {
		here := slices.Contains(l.waiters, w)
		w.party, w.looked = false, true
		switch {
		case !here:
			orphans = append(orphans, shares[i]...)
		case err != nil || len(shares[i]) > 0 || !w.until.After(now) || s.closed: // nobody looks again
			s.reply(l, w, answer{shares[i], err})
		}
	}
	l.noted(p, found, err)
	if err != nil && len(l.waiters) == 0 { // it may not even be a task
		delete(s.lines, l.of)
	}
	return orphans
}

// noted keeps what a look tells about the next one. It is called with mu held.
func (l *line) noted(p *party, found claimed, err error) {
	l.looked, l.looking = p.began, false
	if err != nil {
		l.known = false
		return
	}
	if found.halted { // what is due, or comes due, is for those who look once it is lifted
		l.next, l.known = time.Time{}, false
		return
	}
	l.blocked, l.news = found.blocked, l.news || found.more && !found.round
	if found.asked {
		l.next, l.known = found.next, true
	}
	if now := time.Now(); found.round {
		if again := now.Add(restFor * now.Sub(p.began)); !l.next.After(now) || again.Before(l.next) {
			l.next = again
		}
	}
	if len(found.jobs) > 0 { // their leases end
		l.next = earlier(l.next, found.jobs[0].Until)
	}
	l.next = earlier(l.next, l.soon)
}

// forgetLines drops lines in which nobody has been of late.
func (s *Service) forgetLines() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, l := range s.lines {
		if len(l.waiters) == 0 && !l.attended && time.Since(l.looked) > s.limits.poll {
			delete(s.lines, of)
		}
	}
}

// Close ends all waiting: the process stops.
func (s *Service) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.end)
	}
}
