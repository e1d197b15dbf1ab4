package client

import "encoding/json"

// RunAnswers are what a run was asked for and what can be done about it.
type RunAnswers struct {
	Approval *Approval    `json:"approval" doc:"What it asks, or asked last; null if it never did. It waits for an answer while the state is pending."`
	Question *RunQuestion `json:"question" doc:"Of a run of a schedule: what the graph asks, or asked last; else null. It waits while there is no answer."`
	Actions  []RunAction  `json:"actions" nullable:"false" doc:"What would be accepted now."`
}

// RunAction is something that can be done about a run.
type RunAction struct {
	Name     string   `json:"name" enum:"approve,reject,resolve,resume,cancel" doc:"The last part of the path to POST to."`
	Outcomes []string `json:"outcomes,omitempty" nullable:"false" doc:"With resolve: what can be said. Else absent."`
}

// RunQuestion is what a graph asks a person.
type RunQuestion struct {
	Question   json.RawMessage `json:"question" doc:"As the graph put it."`
	Answer     json.RawMessage `json:"answer" doc:"Null until it was answered."`
	AnsweredBy NullString      `json:"answeredBy"`
	AskedAt    Instant         `json:"askedAt"`
	AnsweredAt Instant         `json:"answeredAt" nullable:"true"`
}

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

// AnsweredRun is a run after somebody decided about it.
type AnsweredRun struct {
	Run
	RunAnswers
}

// ApproveRequest says what is approved.
type ApproveRequest struct {
	Hash   string          `json:"hash,omitempty" minLength:"1" maxLength:"128" doc:"That of the approval that was seen: another call than that one is refused. Absent is whatever is asked."`
	Seen   string          `json:"seen,omitempty" maxLength:"64" doc:"Which question was seen: the id of the approval, or askedAt of the question of a graph, or none if the run only waited. Another one is refused. Absent is whatever is asked."`
	Always bool            `json:"always,omitempty" doc:"Do not ask again when this workflow calls this method."`
	Answer json.RawMessage `json:"answer,omitempty" doc:"Of a run of a schedule: the answer for the graph, any JSON. Absent is true."`
}

// RejectRequest says what is rejected.
type RejectRequest struct {
	Seen string `json:"seen,omitempty" maxLength:"64" doc:"Which question was seen, as for approve. Absent is whatever is asked."`
}

// ResolveRequest says what became of a call.
type ResolveRequest struct {
	Outcome string          `json:"outcome" enum:"happened,did-not-happen,skip,try-again" doc:"happened: the run continues. did-not-happen: the work starts again. skip: the run continues without it, and its events are skipped. try-again: the outcome is checked once more."`
	Result  json.RawMessage `json:"result,omitempty" example:"{\"row\":7}" doc:"With happened: what the call returned, for the script. Absent is null."`
}
