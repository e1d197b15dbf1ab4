package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// What people say about a run. Each request is refused unless the run is in
// the state that it is about, so that a second click does no harm
// (context 3.7.7); the service decides, and writes it down.

type answerRunOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.AnsweredRun
}

type approveRunInput struct {
	RunPath
	OnceHeader
	Body *client.ApproveRequest
}

func (a *API) approveRun(ctx context.Context, in *approveRunInput) (*answerRunOutput, error) {
	body := client.ApproveRequest{}
	if in.Body != nil {
		body = *in.Body
	}
	return a.answerRun(ctx, in.RunPath, body, func(ctx context.Context, tx *store.Tx, r *runstore.Run, by string) error {
		if err := a.seen(ctx, tx, r, body.Seen); err != nil {
			return err
		}
		return a.approve(ctx, tx, r, &body, by)
	})
}

type rejectRunInput struct {
	RunPath
	OnceHeader
	Body *client.RejectRequest
}

func (a *API) rejectRun(ctx context.Context, in *rejectRunInput) (*answerRunOutput, error) {
	body := client.RejectRequest{}
	if in.Body != nil {
		body = *in.Body
	}
	return a.answerRun(ctx, in.RunPath, body, func(ctx context.Context, tx *store.Tx, r *runstore.Run, by string) error {
		if err := a.seen(ctx, tx, r, body.Seen); err != nil {
			return err
		}
		return a.reject(ctx, tx, r, by)
	})
}

func (a *API) resumeRun(ctx context.Context, in *changeRunInput) (*answerRunOutput, error) {
	return a.answerRun(ctx, in.RunPath, struct{}{}, func(ctx context.Context, tx *store.Tx, r *runstore.Run, by string) error {
		if err := a.ofWorkflowOnly(r, "resume run"); err != nil {
			return err
		}
		return a.workflows.ResumeRun(ctx, tx, in.ID, by)
	})
}

type resolveRunInput struct {
	RunPath
	OnceHeader
	Body client.ResolveRequest
}

func (a *API) resolveRun(ctx context.Context, in *resolveRunInput) (*answerRunOutput, error) {
	outcome, result := workflow.Outcome(in.Body.Outcome), in.Body.Result
	if int64(len(result)) > a.cfg.MaxPayload {
		return nil, newProblem(http.StatusRequestEntityTooLarge, string(pawl.CodeTooLarge),
			fmt.Sprintf("the result has %d bytes, more than the %d that are allowed", len(result), a.cfg.MaxPayload), "", client.Fault{Pointer: "/result", Message: "is too large"})
	}
	if outcome != workflow.Happened && len(result) > 0 && string(result) != "null" {
		return nil, invalid("Leave it out, or say that it happened.", client.Fault{Pointer: "/result", Message: "is for the outcome happened only"})
	}
	return a.answerRun(ctx, in.RunPath, &in.Body, func(ctx context.Context, tx *store.Tx, r *runstore.Run, by string) error {
		return a.resolve(ctx, tx, r, outcome, result, by)
	})
}

// answerRun does what somebody decided, once, and tells the run as it is then.
func (a *API) answerRun(ctx context.Context, in RunPath, request any, decide func(ctx context.Context, tx *store.Tx, r *runstore.Run, by string) error) (*answerRunOutput, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	who := actor(callOf(ctx).token)
	body, was, err := once(ctx, a, http.StatusOK, request, whole, func(ctx context.Context, tx *store.Tx) (client.AnsweredRun, error) {
		r, err := a.visibleRun(ctx, tx, in.ID)
		if err != nil {
			return client.AnsweredRun{}, err
		}
		if err := askedOnly(&r); err != nil {
			return client.AnsweredRun{}, err
		}
		if err := decide(ctx, tx, &r, who); err != nil {
			return client.AnsweredRun{}, err
		}
		if r, err = runstore.In(tx).GetRun(ctx, in.ID); err != nil {
			return client.AnsweredRun{}, err
		}
		calls, err := mutationstore.In(tx).RunMutations(ctx, in.ID)
		if err != nil {
			return client.AnsweredRun{}, err
		}
		answers, err := a.answersOf(ctx, tx, &r)
		return client.AnsweredRun{Run: a.runOf(&r, calls), RunAnswers: answers}, err
	})
	if err != nil {
		return nil, err
	}
	return &answerRunOutput{was, body}, nil
}

// answersOf reads what a run was asked for and what can be done about it.
func (a *API) answersOf(ctx context.Context, tx *store.Tx, r *runstore.Run) (client.RunAnswers, error) {
	out := client.RunAnswers{Actions: []client.RunAction{}}
	asked, err := mutationstore.In(tx).NewestApproval(ctx, r.ID)
	switch {
	case err == nil:
		told := a.approvalOf(&asked, a.kinds.LaneOf(r).Name)
		out.Approval = &told
	case !errors.Is(err, pawl.ErrNotFound):
		return out, err
	}
	q, err := executionstore.In(tx).GetQuestion(ctx, r.ID)
	switch {
	case err == nil:
		out.Question = &client.RunQuestion{Question: q.Question, Answer: q.Answer, AnsweredBy: client.NullString(userOf(q.AnsweredBy)), AskedAt: client.At(q.CreatedAt), AnsweredAt: client.At(q.AnsweredAt)}
	case !errors.Is(err, pawl.ErrNotFound):
		return out, err
	}
	k, ok := a.kinds.Get(r.Kind)
	if !ok {
		return out, nil
	}
	actions, err := k.Actions(ctx, tx, r)
	for _, one := range actions {
		out.Actions = append(out.Actions, client.RunAction(one))
	}
	return out, err
}
