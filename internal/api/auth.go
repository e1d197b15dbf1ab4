package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/access"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// maxToken bounds what is looked at of a header, in bytes.
const maxToken = 512

// authenticate finds out who asks. Its errors are problems with status 401, or
// that of a database which does not answer.
func (a *API) authenticate(ctx context.Context, header string, now time.Time) (*userstore.Token, error) {
	scheme, text, _ := strings.Cut(header, " ")
	text = strings.TrimSpace(text)
	if header == "" || !strings.EqualFold(scheme, "Bearer") || text == "" || len(text) > maxToken {
		return nil, unauthorized("a bearer token is needed", "")
	}
	t, err := a.keeper.Find(ctx, text, now)
	if e, ok := errors.AsType[*pawl.Error](err); ok && e.Code == pawl.CodeUnauthorized {
		return nil, unauthorized(e.Msg, e.Hint)
	} else if err != nil {
		return nil, err
	}
	a.touches.touch(ctx, &t, now)
	return &t, nil
}

func unauthorized(detail, hint string) *problem {
	p := newProblem(http.StatusUnauthorized, string(pawl.CodeUnauthorized), detail, hint)
	p.header.Set("WWW-Authenticate", `Bearer realm="pawl"`)
	return p
}

// actor is how the audit log calls whoever holds the token.
func actor(t *userstore.Token) string { return access.Actor(t) }

// touches notes when tokens were last used, at most once a minute each, behind
// the back of the requests.
type touches struct {
	api *API
	wg  sync.WaitGroup

	mu     sync.Mutex
	last   map[string]time.Time // by token id; guarded by mu
	closed bool                 // guarded by mu
}

const (
	touchTimeout = 5 * time.Second
	maxTouches   = 10_000 // tokens that are remembered
)

func (s *touches) touch(ctx context.Context, t *userstore.Token, now time.Time) {
	if now.Sub(t.LastUsedAt) < userstore.TokenUseEvery {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || now.Sub(s.last[t.ID]) < userstore.TokenUseEvery {
		return
	}
	if len(s.last) >= maxTouches {
		clear(s.last)
	}
	s.last[t.ID] = now
	id := t.ID
	s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touchTimeout)
		defer cancel()
		if err := userstore.On(s.api.db).TouchToken(ctx, id, now); err != nil {
			s.api.log.Debug("note the use of a token", "token", id, "err", err)
		}
	})
}

// close waits for notes that are being written and takes no more.
func (s *touches) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wg.Wait()
}
