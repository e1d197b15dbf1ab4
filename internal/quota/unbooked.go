package quota

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/pawlrun/pawl/internal/outbound"
)

// Unbooked has the credentials of providers and no book: it counts nothing and
// lets everything through. It is for trying something out where there is no
// database.
type Unbooked struct{ book *Book }

// NewUnbooked makes one for the given providers.
func NewUnbooked(p *Providers, client *outbound.Client, log *slog.Logger) *Unbooked {
	return &Unbooked{NewBook(nil, p, client, log)}
}

// Acquire lets every call through.
func (*Unbooked) Acquire(context.Context, string) error { return nil }

// Learn forgets what an answer says about limits.
func (*Unbooked) Learn(context.Context, string, int, http.Header) error { return nil }

// Authorize adds the credential of the request's domain; see Book.Authorize.
func (u *Unbooked) Authorize(ctx context.Context, req *http.Request) error {
	return u.book.Authorize(ctx, req)
}

// Rejected tells that a credential was refused; see Book.Rejected.
func (u *Unbooked) Rejected(req *http.Request) { u.book.Rejected(req) }
