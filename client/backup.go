package client

import (
	"context"
	"io"
	"net/http"
)

// Backup asks for a copy of the database. The caller reads and closes it; size
// is -1 if it is not known. A copy that is cut off ends with an error.
func (c *Client) Backup(ctx context.Context) (body io.ReadCloser, size int64, err error) {
	req, err := c.request(ctx, http.MethodPost, "/api/v1/backup", nil, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", "application/vnd.sqlite3, application/problem+json")
	resp, err := c.do(req)
	if err != nil {
		return nil, 0, c.unreachable(ctx, err)
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		defer resp.Body.Close() //nolint:errcheck // it was read
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return nil, 0, c.unreachable(ctx, err)
		}
		return nil, 0, c.problem(resp, raw)
	}
	return resp.Body, resp.ContentLength, nil
}
