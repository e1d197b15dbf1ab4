package execution

import (
	"context"
	"errors"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// ask is a request whose shape was checked.
type ask struct {
	key, graphID, hash string
	req                contract.RunRequestV1
}

// claimTries bounds how often a claim looks again because a rival was faster.
const claimTries = 5

// Run implements API.
func (s *Service) Run(ctx context.Context, key, graphID string, req contract.RunRequestV1) (contract.RunAnswerV1, error) {
	return s.run(ctx, key, graphID, req, "")
}

func (s *Service) run(ctx context.Context, key, graphID string, req contract.RunRequestV1, by string) (contract.RunAnswerV1, error) {
	a, err := checked(key, graphID, req)
	if err != nil {
		return contract.RunAnswerV1{}, err
	}
	var f *flight
	var stored contract.RunAnswerV1
	err = s.db.WriteShared(ctx, key, func(ctx context.Context, tx *store.Tx) error {
		f, stored, err = s.claim(ctx, tx, a)
		if err != nil || f == nil {
			return err
		}
		return audit(ctx, tx, by, "graph.run", f.run.RunID, map[string]any{"graph": graphID, "grant": req.ExecutionGrantID, "attempt": f.run.Attempt})
	})
	if err != nil || f == nil {
		return stored, err
	}
	if err := s.launch(ctx, f); err != nil {
		return contract.RunAnswerV1{}, err
	}
	return wait(ctx, f)
}

// audit notes what a guest does, in the transaction that does it.
func audit(ctx context.Context, tx *store.Tx, by, action, runID string, detail any) error {
	if by == "" {
		return nil
	}
	return tx.Audit(ctx, by, action, "run:"+runID, detail)
}

// checked is the part of the order that needs no database: graph id, key, body.
func checked(key, graphID string, req contract.RunRequestV1) (ask, error) {
	if err := checkGraphID(graphID); err != nil {
		return ask{}, err
	}
	if err := contract.CheckKey(key); err != nil {
		return ask{}, err
	}
	check := req.Check
	if work.Is(graphID) {
		if req.ScheduleID == "" { // nobody but a slot brings one
			return ask{}, errNoGraph(nil)
		}
		check = req.CheckPlain
	}
	if err := check(); err != nil {
		return ask{}, err
	}
	hash, err := requestHash(graphID, req.ExecutionGrantID, req.Input)
	if err != nil {
		return ask{}, &pawl.Error{
			Code: pawl.CodeInvalid, Reason: string(contract.InvalidRequest), Op: "run graph", Msg: "the input cannot be read", Err: err,
			Fields: []pawl.Field{{Pointer: "/input", Message: "must be one JSON value"}},
		}
	}
	return ask{key: key, graphID: graphID, hash: hash, req: req}, nil
}

// checkGraphID: what cannot be a graph is not found.
func checkGraphID(graphID string) error {
	if _, _, err := contract.ParseGraphID(graphID); err != nil {
		return errNoGraph(err)
	}
	return nil
}

func errNoGraph(err error) error {
	return &pawl.Error{
		Code: pawl.CodeNotFound, Op: "run graph", Msg: "there is no such graph",
		Hint: "A graph id looks like langgraph:poet.", Err: err,
	}
}

// claim makes this service the executor of a key, or tells what is stored
// under it: then there is no flight. It has no effect but in its transaction.
func (s *Service) claim(ctx context.Context, tx *store.Tx, a ask) (*flight, contract.RunAnswerV1, error) {
	none := contract.RunAnswerV1{}
	for range claimTries {
		n, refusal := s.allow(ctx, tx, a)
		if refusal == nil { // mostly it is new
			f, err := s.claimNew(ctx, tx, a, n)
			if err != nil || f != nil {
				return f, none, err
			}
		}
		e, err := executionstore.In(tx).ExecutionByKey(ctx, a.key)
		if errors.Is(err, pawl.ErrNotFound) && refusal != nil {
			return nil, none, refusal
		}
		if errors.Is(err, pawl.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, none, err
		}
		what, err := judge(e, a.hash, a.req.Attempt, tx.Now)
		if err != nil {
			return nil, none, err
		}
		if what == moveWait && s.doubts.has(e.Owner) {
			what = moveTake
		}
		switch what {
		case moveRefuse:
			return nil, none, errMismatch()
		case moveWait:
			return nil, none, &InProgressError{RunID: e.RunID}
		case moveAnswer:
			answer, err := answerOf(e)
			return nil, answer, err
		case moveTake, moveAgain:
		}
		f, err := s.takeOver(ctx, tx, e, takeWish{again: what == moveAgain, attempt: a.req.Attempt, input: a.req.Input, hash: a.hash, req: a.req})
		if err != nil || f != nil {
			return f, none, err
		}
	}
	return nil, none, errBusy()
}

func errBusy() error {
	return &pawl.Error{Code: pawl.CodeUnavailable, Op: "run graph", Msg: "others ask for the same run", Hint: "Try again."}
}

// newcomer is what a run needs that was not asked for before.
type newcomer struct {
	grant   grant.Grant
	exec    runner.Executor
	name    string // of the graph
	account grantstore.Account
	limited bool // something bounds what it may cost
}

// allow asks the grant, the graph and the account. It writes nothing.
func (s *Service) allow(ctx context.Context, tx *store.Tx, a ask) (n newcomer, err error) {
	if work.Is(a.graphID) { // it needs no grant, and nobody pays
		n.exec, n.name, err = s.graphs.Lookup(a.graphID)
		return n, err
	}
	if n.grant, err = grant.Authorize(ctx, tx, a.req.ExecutionGrantID, a.graphID); err != nil {
		return n, err
	}
	if n.exec, n.name, err = s.graphs.Lookup(a.graphID); err != nil {
		return n, err
	}
	n.account, n.limited, err = bounded(ctx, tx, n.grant)
	return n, err
}

// claimNew claims a key. Nil means that it is known.
func (s *Service) claimNew(ctx context.Context, tx *store.Tx, a ask, n newcomer) (*flight, error) {
	f := s.draft(tx, a, n)
	claimed, err := executionstore.In(tx).ClaimExecution(ctx, f.claimed)
	if err != nil || !claimed {
		return nil, err
	}
	if n.limited {
		if err := reserve(ctx, tx, n.grant, f.claimed); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// draft is a claim of a key that is not written yet.
func (s *Service) draft(tx *store.Tx, a ask, n newcomer) *flight {
	m := memory{ScheduleID: a.req.ScheduleID, ScheduledFor: a.req.ScheduledFor}
	e := executionstore.Execution{
		Key: a.key, Hash: a.hash, RunID: a.req.RunID, Attempt: max(a.req.Attempt, 1), GraphID: a.graphID, GrantID: n.grant.ID,
		Remote: m.json(), Owner: s.newOwner(), LeaseUntil: tx.Now.Add(leaseFor),
	}
	if e.RunID == "" {
		e.RunID = store.NewID()
	}
	f := s.newFlight(e, m, n.exec, n.name, n.grant, a.req.Input, nil)
	f.about(a.req)
	f.claimed, f.account, f.free = e, n.account, !n.limited
	tx.InDoubt(func() { s.doubts.note(e.Owner, tx.Now) })
	return f
}

// newOwner names a claim. No two claims have one name, not even those of one
// process: the name is the fence.
func (s *Service) newOwner() string { return s.node + "/" + store.NewID() }

// bounded reads the account of a grant, and reports whether something bounds
// what a run may cost. Such runs are counted against each other before they are
// allowed, so each of them has a transaction of its own.
func bounded(ctx context.Context, tx *store.Tx, g grant.Grant) (grantstore.Account, bool, error) {
	account, err := grantstore.In(tx).AccountByID(ctx, g.BillingAccountID)
	if err != nil || billing.Unbounded(g, account) {
		return account, false, err
	}
	return account, true, tx.RequireOwnTx()
}

func reserve(ctx context.Context, tx *store.Tx, g grant.Grant, e executionstore.Execution) error {
	return billing.ReserveFor(ctx, tx, g, e.GraphID, e.RunID, e.Attempt)
}

// takeWish is why an execution that nobody executes is taken over.
type takeWish struct {
	again   bool   // as a new attempt of this number
	attempt int    //
	input   []byte // of the request; that of a resumption is remembered
	resume  []byte // the answer of a person
	hash    string // of the request; empty leaves it
	req     contract.RunRequestV1
}

// takeOver claims what nobody executes. Nil means that a rival was faster.
//
// The grant is asked again before anything new is begun. A run that may be
// under way at its executor is followed to its end in any case: it was allowed,
// it is paid for, and its outcome is wanted.
func (s *Service) takeOver(ctx context.Context, tx *store.Tx, seen executionstore.Execution, wish takeWish) (*flight, error) {
	m, err := memoryOf(seen)
	if err != nil {
		return nil, err
	}
	begins := wish.again || wish.resume != nil || m.Remote == nil
	var g grant.Grant
	if !work.Is(seen.GraphID) {
		under := seen.GrantID
		if wish.hash != "" && wish.again { // a person may have given the slot another one
			under = wish.req.ExecutionGrantID
		}
		g, err = grant.Authorize(ctx, tx, under, seen.GraphID)
		if _, refused := grant.RefusalCode(err); err != nil && (begins || !refused || g.ID == "") {
			return nil, err
		}
	}
	exec, name, err := s.graphs.Lookup(seen.GraphID)
	if err != nil {
		return nil, err
	}
	next := seen
	next.Owner, next.LeaseUntil = s.newOwner(), tx.Now.Add(leaseFor)
	if wish.again {
		next.Attempt, next.CancelAt = wish.attempt, time.Time{}
		m.Units, m.Asked, m.Question, m.Input, m.Retry, m.RetryAfterMS = 0, false, "", nil, false, 0
	}
	next.Remote, next.GrantID = m.json(), g.ID
	if wish.hash != "" {
		next.Hash = wish.hash
	}
	limited := false
	if begins && !work.Is(seen.GraphID) {
		if _, limited, err = bounded(ctx, tx, g); err != nil {
			return nil, err
		}
	}
	taken, err := executionstore.In(tx).TakeExecution(ctx, seen, next)
	if err != nil || !taken {
		return nil, err
	}
	if limited {
		if err := reserve(ctx, tx, g, next); err != nil {
			return nil, err
		}
	}
	if wish.input == nil {
		wish.input = m.Input
	}
	f := s.newFlight(next, m, exec, name, g, wish.input, wish.resume)
	f.about(wish.req)
	return f, nil
}

// about tells the run what its request says of it that is not part of what makes
// two requests the same.
func (f *flight) about(req contract.RunRequestV1) {
	f.run.Schedule, f.run.Timezone, f.run.Idempotent, f.run.Retries, f.run.Asked = req.Schedule, req.Timezone, req.Idempotent, req.Retries, req.Asked
}

func (s *Service) newFlight(e executionstore.Execution, m memory, exec runner.Executor, name string, g grant.Grant, input, resume []byte) *flight {
	provider, _, _ := contract.ParseGraphID(e.GraphID) // it was checked
	begun := time.Now()
	f := &flight{
		s: s, key: e.Key, owner: e.Owner, exec: exec, memory: m, stopAtOnce: !e.CancelAt.IsZero(),
		run: runner.Run{
			RunID: e.RunID, Attempt: e.Attempt, ScheduleID: m.ScheduleID, ScheduledFor: m.ScheduledFor.Time,
			GraphID: e.GraphID, Name: name, Input: input, Key: e.Key, Remote: m.Remote, Resume: resume,
		},
		bill: billing.Attempt{
			RunID: e.RunID, Attempt: e.Attempt, AccountID: g.BillingAccountID, GrantID: e.GrantID,
			ScheduleID: m.ScheduleID, Executor: provider,
		},
		ended: make(chan struct{}), done: make(chan struct{}),
	}
	f.beaten.Store(&begun)
	return f
}
