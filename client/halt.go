package client

import (
	"context"
	"net/http"
)

// HaltPath is the switch that stops all starts.
const HaltPath = "/api/v1/halt"

// Halt is whether everything is halted: then nothing starts, on no node.
type Halt struct {
	Halted bool       `json:"halted"`
	Since  Instant    `json:"since" nullable:"true" doc:"Null if nothing is halted."`
	By     NullString `json:"by" example:"ada" doc:"Who halted it; null if nothing is halted."`
	Note   NullString `json:"note" example:"The payment provider is down." doc:"Why; null if nobody said."`
}

// HaltRequest halts everything.
type HaltRequest struct {
	Note string `json:"note,omitempty" example:"The payment provider is down." doc:"Why, for people: up to 500 characters. Of a halt that is in force, it replaces the note."`
}

// Halt stops all starts on all nodes. What runs continues to its end.
func (c *Client) Halt(ctx context.Context, note string) (Halt, error) {
	return decode[Halt](c, "a halt")(c.Put(ctx, HaltPath, HaltRequest{Note: note}))
}

// Halted reads whether everything is halted.
func (c *Client) Halted(ctx context.Context) (Halt, error) {
	return decode[Halt](c, "a halt")(c.Get(ctx, HaltPath))
}

// Unhalt lets things start again. If nothing is halted, it changes nothing.
func (c *Client) Unhalt(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodDelete, HaltPath, nil, nil)
	return err
}
