package client

import "context"

// Pause is what a person said when they paused something.
type Pause struct {
	Since Instant    `json:"since"`
	Until Instant    `json:"until" nullable:"true" doc:"When it continues by itself; null: when somebody resumes it."`
	By    string     `json:"by" example:"ada"`
	Note  NullString `json:"note" example:"The shop moves to another host." doc:"Why; null if nobody said."`
}

// PauseRequest says for how long something is paused, and why. What was said before is
// replaced.
type PauseRequest struct {
	Until string `json:"until,omitempty" example:"2h" doc:"When it continues by itself: a time (RFC 3339) or a duration from now, such as 90m or 2d; up to 10 years. Absent: when somebody resumes it."`
	Note  string `json:"note,omitempty" example:"The shop moves to another host." doc:"Why, for people: up to 500 characters."`
}

// Pause pauses what is at a path, such as WorkflowPath("mail-to-sheet"), or changes what was
// said about its pause.
func (c *Client) Pause(ctx context.Context, path string, how PauseRequest) error {
	_, err := c.Post(ctx, path+"/pause", how)
	return err
}
