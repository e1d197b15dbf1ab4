package api

import (
	"context"
	"encoding/json"

	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store"
)

// Question is what a graph asks a person, as long as nobody answered. It is no
// Approval: there is no call to be seen and none to be made, and any JSON is an
// answer.
type Question struct {
	RunID      string          `json:"runId" format:"uuid" doc:"The run that asks; it is answered by approving it there."`
	Schedule   string          `json:"schedule" example:"morning-poet"`
	ScheduleID string          `json:"scheduleId" format:"uuid"`
	Question   json.RawMessage `json:"question" doc:"As the graph put it; not to be trusted."`
	AskedAt    Instant         `json:"askedAt"`
}

type listQuestionsOutput struct{ Body Page[Question] }

const questionCursor = "question"

// listQuestions has those of the schedules of the caller, and of everybody for
// admins, as the list of runs does.
func (a *API) listQuestions(ctx context.Context, in *PageInput) (*listQuestionsOutput, error) {
	at, id, err := in.placeInTime(questionCursor)
	if err != nil {
		return nil, err
	}
	viewer, out := access.Reach(callOf(ctx).token, schedulesResource), &listQuestionsOutput{}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := tx.ListQuestions(ctx, viewer, store.Place{CreatedAt: at, ID: id}, in.Limit+1)
		cursor := func(q store.AskedQuestion) string { return timeCursor(q.CreatedAt, q.RunID) }
		out.Body = cutPage(list, in.Limit, questionCursor, cursor, func(q store.AskedQuestion) Question {
			return Question{q.RunID, q.Schedule, q.ScheduleID, q.Question, Instant{q.CreatedAt}}
		})
		return err
	})
	return out, err
}
