package quota

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlrun/pawl"
)

// CredentialError is a call that could not be made because there is no token
// for its domain. It names that domain and nothing else of the definition.
type CredentialError struct {
	Domain     string
	Class      pawl.Class // auth: a person has to look; transient: try again
	Msg        string
	Hint       string
	RetryAfter time.Duration // when the token endpoint said how long to wait
	Err        error         // a context's, or nil
}

// Error says what went wrong.
func (e *CredentialError) Error() string {
	return fmt.Sprintf("get a token for %s: %s", e.Domain, e.Msg)
}

// RetryDelay is how long the token endpoint asked to wait; 0: it did not.
func (e *CredentialError) RetryDelay() time.Duration { return e.RetryAfter }

// Unwrap returns the error as a *pawl.Error, and the cause. A transient one is
// pawl.ErrUnavailable.
func (e *CredentialError) Unwrap() []error {
	code := pawl.CodeUnauthorized
	if e.Class == pawl.ClassTransient {
		code = pawl.CodeUnavailable
	}
	list := []error{&pawl.Error{Code: code, Op: "get a token for " + e.Domain, Msg: e.Msg, Hint: e.Hint}}
	if e.Err != nil {
		list = append(list, e.Err)
	}
	return list
}

// Authorize adds the credential of the request's domain. A request to a domain
// without one stays as it is. Its errors are *CredentialError.
func (b *Book) Authorize(ctx context.Context, req *http.Request) error {
	p, ok := b.providers.Find(Domain(req.URL))
	if !ok {
		return nil
	}
	if p.Auth != AuthOAuth2 {
		p.apply(req)
		return nil
	}
	token, err := b.tokens[p.Domain].get(ctx)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", bearer(token))
	return nil
}

// Rejected tells the book that the domain answered 401 to a request that was
// authorised. A token that can be renewed is given up, so that authorising the
// request once more is worth a try; fixed credentials stay as they are.
func (b *Book) Rejected(req *http.Request) {
	if k := b.tokens[Domain(req.URL)]; k != nil {
		k.reject(req.Header.Get("Authorization"), time.Now())
	}
}

func bearer(token secret) string { return "Bearer " + token() }
