package httptool

import (
	"context"
	"errors"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// book asks the book of calls for leave to make a call. Without it nothing is
// sent.
func (s *Service) book(ctx context.Context, r request) *connector.Error {
	if s.quota == nil || s.client == nil {
		return nil
	}
	err := s.quota.Acquire(ctx, quota.Domain(r.url))
	if err == nil {
		return nil
	}
	var denied interface{ DeniedUntil() time.Time }
	if errors.As(err, &denied) {
		until := denied.DeniedUntil()
		return &connector.Error{
			Class: pawl.ClassTransient, Code: "rate_limited", NotApplied: true, NotSent: true, Deferred: true, RetryAfter: max(0, time.Until(until)),
			Msg: s.described(r) + ": not called before " + pawl.FormatTime(until) + ", to keep to the limits of the service",
		}
	}
	return &connector.Error{Class: pawl.ClassTransient, Code: "unbooked", NotApplied: true, NotSent: true, Msg: s.described(r) + ": the call could not be booked", Err: err}
}

// learn notes what an answer tells about the limits of the service. The answer
// stands, whether that works or not.
func (s *Service) learn(ctx context.Context, r request, a answer) {
	if s.quota == nil {
		return
	}
	domain := quota.Domain(r.url)
	if err := s.quota.Learn(ctx, domain, a.status, a.header); err != nil && s.log != nil {
		s.log.WarnContext(ctx, "the limits of a service could not be noted", "domain", domain, "err", err)
	}
}
