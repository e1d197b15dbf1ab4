package contract

import (
	"context"
	"errors"
	"slices"

	pawl "github.com/pawlrun/pawl"
)

// ErrorCode says why a run of a graph did not succeed.
type ErrorCode string

// The closed set of error codes.
const (
	GrantNotFound       ErrorCode = "grant_not_found"
	GrantExpired        ErrorCode = "grant_expired"
	GrantRevoked        ErrorCode = "grant_revoked"
	GrantScope          ErrorCode = "grant_scope" // the grant does not cover the graph
	RateLimit           ErrorCode = "rate_limit"
	Timeout             ErrorCode = "timeout"
	Aborted             ErrorCode = "aborted" // somebody stopped it
	InsufficientCredits ErrorCode = "insufficient_credits"
	InvalidRequest      ErrorCode = "invalid_request"
	NotFound            ErrorCode = "not_found"
	Internal            ErrorCode = "internal"
)

// ErrorCodes returns the closed set of error codes.
func ErrorCodes() []ErrorCode {
	return []ErrorCode{
		GrantNotFound, GrantExpired, GrantRevoked, GrantScope, RateLimit, Timeout,
		Aborted, InsufficientCredits, InvalidRequest, NotFound, Internal,
	}
}

// Valid reports whether c is one of the closed set.
func (c ErrorCode) Valid() bool { return slices.Contains(ErrorCodes(), c) }

// IsGrant reports whether c says that the grant does not allow the run.
func (c ErrorCode) IsGrant() bool {
	return slices.Contains([]ErrorCode{GrantNotFound, GrantExpired, GrantRevoked, GrantScope}, c)
}

// CodeOf tells any error of the execution service in the closed set: by the
// reason of a *pawl.Error, then by its code. What is not known is Internal.
func CodeOf(err error) ErrorCode {
	e, ok := errors.AsType[*pawl.Error](err)
	switch {
	case err == nil:
		return ""
	case ok && ErrorCode(e.Reason).Valid():
		return ErrorCode(e.Reason)
	case ok && (e.Code == pawl.CodeInvalid || e.Code == pawl.CodeTooLarge):
		return InvalidRequest
	case ok && e.Code == pawl.CodeNotFound:
		return NotFound
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Aborted
	}
	return Internal
}
