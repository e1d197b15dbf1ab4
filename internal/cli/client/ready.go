package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// Ready asks whether the server can do its work, and what it looked at.
func (c *Client) Ready(ctx context.Context) (checks map[string]string, ready bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	req, err := c.request(ctx, http.MethodGet, "/readyz", nil, nil)
	if err != nil {
		return nil, false, err
	}
	resp, err := c.do(req)
	if err != nil {
		return nil, false, c.unreachable(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, false, c.unreachable(ctx, err)
	}
	var told struct {
		Checks map[string]string `json:"checks"`
	}
	if json.Unmarshal(raw, &told) != nil || told.Checks == nil {
		return nil, false, c.problem(resp, raw)
	}
	return told.Checks, resp.StatusCode == http.StatusOK, nil
}
