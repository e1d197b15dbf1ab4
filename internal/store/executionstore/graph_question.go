package executionstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// GraphQuestion is what a graph asks a person.
type GraphQuestion struct {
	RunID      string
	ScheduleID string
	ID         string // of the execution service; may be empty
	Question   json.RawMessage
	Answer     json.RawMessage // nil until somebody answered
	AnsweredBy string
	CreatedAt  time.Time
	AnsweredAt time.Time
}

const questionColumns = `run_id, schedule_id, question_id, question, answer, answered_by, created_at, answered_at`

func scanQuestion(row store.Scanner) (GraphQuestion, error) {
	var q GraphQuestion
	var question string
	var id, answer, by *string
	var created int64
	var answered *int64
	err := row.Scan(&q.RunID, &q.ScheduleID, &id, &question, &answer, &by, &created, &answered)
	q.ID, q.Question, q.Answer, q.AnsweredBy, q.CreatedAt, q.AnsweredAt = store.FromNullText(id), json.RawMessage(question), store.FromNullJSON(answer), store.FromNullText(by), store.FromMillis(created), store.FromNullMillis(answered)
	return q, err
}

// StoreQuestion keeps what a graph asks. A run that asks again after an answer has
// a new question.
func (tx Tx) StoreQuestion(ctx context.Context, runID, scheduleID, id string, question json.RawMessage) error {
	_, err := tx.Exec(ctx, `insert into graph_questions (run_id, schedule_id, question_id, question, created_at) values ($1, $2, $5, $3, $4)
		on conflict (run_id) do update set question_id = excluded.question_id, question = excluded.question, answer = null, answered_by = null, answered_at = null, created_at = excluded.created_at`,
		runID, scheduleID, string(question), store.Millis(tx.Now), store.NullText(id))
	if err != nil {
		return fmt.Errorf("keep question: %w", err)
	}
	return nil
}

// GetQuestion reads what a run asks, or fails with pawl.ErrNotFound.
func (tx Tx) GetQuestion(ctx context.Context, runID string) (GraphQuestion, error) {
	q, err := scanQuestion(tx.QueryRow(ctx, `select `+questionColumns+` from graph_questions where run_id = $1`, runID))
	if errors.Is(err, store.ErrNoRow) {
		return GraphQuestion{}, &pawl.Error{Code: pawl.CodeNotFound, Op: "read question", Msg: fmt.Sprintf("run %s asks nothing", runID)}
	}
	return q, err
}

// AnswerQuestion keeps the answer of a person, once. It reports whether the
// question was open.
func (tx Tx) AnswerQuestion(ctx context.Context, runID string, answer json.RawMessage, by string) (bool, error) {
	n, err := tx.Exec(ctx, `update graph_questions set answer = $2, answered_by = $3, answered_at = $4 where run_id = $1 and answer is null`,
		runID, string(answer), store.NullText(by), store.Millis(tx.Now))
	if err != nil {
		return false, fmt.Errorf("answer question: %w", err)
	}
	return n > 0, nil
}

// HoldQuestion keeps the question of a run from changing until the transaction
// ends. It reports whether it is the one that was asked at this instant.
func (tx Tx) HoldQuestion(ctx context.Context, runID string, asked time.Time) (bool, error) {
	n, err := tx.Exec(ctx, `update graph_questions set created_at = created_at where run_id = $1 and created_at = $2`, runID, store.Millis(asked))
	if err != nil {
		return false, fmt.Errorf("hold question: %w", err)
	}
	return n > 0, nil
}

// AskedQuestion is an open question, with the name of the schedule whose graph
// asks it.
type AskedQuestion struct {
	GraphQuestion
	Schedule string
}

// ListQuestions reads up to limit questions of runs that wait for an answer,
// the newest first, those before a place; the zero cursor begins with the
// newest. A viewer sees those of the own schedules only, an empty one all.
func (tx Tx) ListQuestions(ctx context.Context, viewer string, before store.Place, limit int) ([]AskedQuestion, error) {
	c := store.Where{Texts: []string{"q.answer is null", "r.kind = 'schedule' and r.status = 'paused:approval'"}}
	if viewer != "" {
		c.Add("s.owner_user_id = ?", viewer)
	}
	if before.ID != "" {
		c.Add("(q.created_at, q.run_id) < (?, ?)", store.Millis(before.CreatedAt), before.ID)
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`select q.run_id, q.schedule_id, q.question, q.created_at, s.name
		from graph_questions q join runs r on r.id = q.run_id join schedules s on s.id = q.schedule_id
		where %s order by q.created_at desc, q.run_id desc limit $%d`, &c, len(c.Args)+1), append(c.Args, limit)...)
	return store.ScanAll(rows, err, "list questions", func(row store.Scanner) (q AskedQuestion, err error) {
		var question string
		var created int64
		err = row.Scan(&q.RunID, &q.ScheduleID, &question, &created, &q.Schedule)
		q.Question, q.CreatedAt = json.RawMessage(question), store.FromMillis(created)
		return q, err
	})
}
