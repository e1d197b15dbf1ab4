package api

import (
	"context"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/executionstore"
)

const questionCursor = "question"

// listQuestions has those of the schedules of the caller, and of everybody for
// admins, as the list of runs does.
func (a *API) listQuestions(ctx context.Context, in *PageInput) (*pageOutput[client.Question], error) {
	at, id, err := in.placeInTime(questionCursor)
	if err != nil {
		return nil, err
	}
	viewer, out := access.Reach(callOf(ctx).token, schedulesResource), &pageOutput[client.Question]{}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := executionstore.In(tx).ListQuestions(ctx, viewer, store.Place{CreatedAt: at, ID: id}, in.Limit+1)
		cursor := func(q executionstore.AskedQuestion) string { return timeCursor(q.CreatedAt, q.RunID) }
		out.Body = cutPage(list, in.Limit, questionCursor, cursor, func(q executionstore.AskedQuestion) client.Question {
			return client.Question{RunID: q.RunID, Schedule: q.Schedule, ScheduleID: q.ScheduleID, Question: q.Question, AskedAt: client.At(q.CreatedAt)}
		})
		return err
	})
	return out, err
}
