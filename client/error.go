package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"

	pawl "github.com/pawlrun/pawl"
)

// problem turns an answer that is no success into an error.
func (c *Client) problem(resp *http.Response, raw []byte) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var told Problem
	if kind != "application/problem+json" || json.Unmarshal(raw, &told) != nil {
		return c.noProblem(resp)
	}
	e := &pawl.Error{Code: codeOf(told.Code, resp.StatusCode), Msg: told.Detail, Hint: told.Hint}
	if e.Code == pawl.CodeConflict && told.Code != string(e.Code) {
		e.Reason = told.Code
	}
	if e.Msg == "" {
		e.Msg = told.Title
	}
	if e.Msg == "" {
		e.Msg = resp.Status
	}
	if e.Code == pawl.CodeInternal && told.RequestID != "" {
		e.Msg += " (request " + told.RequestID + ", see the log of the server)"
	}
	for _, f := range told.Errors {
		e.Fields = append(e.Fields, pawl.Field{Pointer: f.Pointer, Message: f.Message})
	}
	switch {
	case e.Code != pawl.CodeUnauthorized:
	case c.anonymous(): // the server tells of headers, which programs do not have
		e.Hint = cmp.Or(c.cfg.Hints.NoToken, "Give the client a token.")
	default:
		e.Hint = cmp.Or(c.cfg.Hints.BadToken, "The token is not valid here.")
	}
	return e
}

// noProblem is an answer that no Pawl server would give, such as that of a
// proxy in front of it.
func (c *Client) noProblem(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &pawl.Error{Code: pawl.CodeUnreachable, Msg: fmt.Sprintf("what answers at %s cannot reach the server: %s", c.URL(), resp.Status)}
	}
	return c.strange(resp.Status, nil)
}

// strange is an answer that does not look like one of a Pawl server.
func (c *Client) strange(what string, err error) error {
	return &pawl.Error{
		Code: pawl.CodeInternal, Msg: fmt.Sprintf("%s answered %s", c.URL(), what), Err: err,
		Hint: cmp.Or(c.cfg.Hints.NotPawl, "Is it a Pawl server?"),
	}
}

// codeOf is the code of a problem. A code of one resource, such as
// run_active, is told by its status.
func codeOf(code string, status int) pawl.Code {
	known := []pawl.Code{
		pawl.CodeInvalid, pawl.CodeUnauthorized, pawl.CodeForbidden, pawl.CodeNotFound, pawl.CodeConflict,
		pawl.CodeTooLarge, pawl.CodeUnavailable, pawl.CodeLeaseLost, pawl.CodeSchema, pawl.CodeInternal,
	}
	if slices.Contains(known, pawl.Code(code)) {
		return pawl.Code(code)
	}
	switch status {
	case http.StatusBadRequest:
		return pawl.CodeInvalid
	case http.StatusPreconditionFailed: // it is not as it was when it was read
		return pawl.CodeConflict
	}
	for _, c := range known {
		if c.HTTPStatus() == status {
			return c
		}
	}
	return pawl.CodeInternal
}

// unreachable is a request that got no answer, or the end of ctx.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) && !errors.Is(context.Cause(ctx), errSilent) {
		return context.Canceled
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	hint := cmp.Or(c.cfg.Hints.Unreachable, "Check the address, and that the server runs.")
	if Local(c.base.String()) {
		hint = "Start it with: pawl serve"
	}
	return &pawl.Error{Code: pawl.CodeUnreachable, Msg: "no answer from the server at " + c.URL(), Hint: hint, Err: err}
}
