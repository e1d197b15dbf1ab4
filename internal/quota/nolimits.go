package quota

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/pawlrun/pawl/internal/outbound"
)

// NoLimits has the credentials of providers and no book: it counts nothing and
// lets everything through. It is for trying something out where there is no
// database.
type NoLimits struct{ book *Book }

// NewUnbooked makes one for the given providers.
func NewNoLimits(p *Providers, client *outbound.Client, log *slog.Logger) *NoLimits {
	return &NoLimits{NewBook(nil, p, client, log)}
}

// Acquire lets every call through.
func (*NoLimits) Acquire(context.Context, string) error { return nil }

// Learn forgets what an answer says about limits.
func (*NoLimits) Learn(context.Context, string, int, http.Header) error { return nil }

// Authorize adds the credential of the request's domain; see Book.Authorize.
func (u *NoLimits) Authorize(ctx context.Context, req *http.Request) error {
	return u.book.Authorize(ctx, req)
}

// Rejected tells that a credential was refused; see Book.Rejected.
func (u *NoLimits) Rejected(req *http.Request) { u.book.Rejected(req) }
