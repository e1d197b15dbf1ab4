package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// maxIdempotencyKey is the length of the longest key, in characters.
const maxIdempotencyKey = 255

// OnceHeader describes the header of requests that change something (exported,
// like all types that inputs embed, because huma sees no others). It is
// read by admit, which can tell an empty header from an absent one.
type OnceHeader struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"Makes it safe to send the request again: it is acted on once, and later ones get the same answer, with the header Idempotency-Replayed: true. Kept for 24 hours." example:"order-4711"`
}

// CheckedHeader describes the same header of requests that are a POST and change
// nothing. They are carried out again; a key is only kept from meaning two
// things.
type CheckedHeader struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"The request changes nothing, so it may be sent again with or without a key, and is answered again. A key that was used for another request is refused." example:"trial-4711"`
}

// replayed is the header of an answer that was given before.
type replayed string

const (
	isReplayed replayed = "true"
	isNew      replayed = ""
)

// idempotencyKey reads the header: empty if it was not sent.
func idempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	good := len(values) == 1 && key != "" && len(key) <= maxIdempotencyKey
	for _, c := range []byte(key) {
		good = good && c > ' ' && c <= '~'
	}
	if !good {
		return "", invalid("Use a key of your own making, such as a UUID, and send it once.",
			client.Fault{Pointer: "/Idempotency-Key", Message: fmt.Sprintf("must be 1 to %d visible ASCII characters", maxIdempotencyKey)})
	}
	return key, nil
}

// effect is what a request does, in one transaction. It may run more than once.
type effect[T any] func(ctx context.Context, tx *store.Tx) (T, error)

// once runs an effect whose answer is kept under the request's idempotency
// key, in the effect's own transaction; or gives the answer that is there
// already. Without a key it just runs it. request is what was asked, as it is
// compared with what was asked before; keep is what of an answer may be stored.
func once[T any](ctx context.Context, a *API, status int, request any, keep func(T) T, do effect[T]) (out T, was replayed, err error) {
	return onceIn(ctx, func(ctx context.Context, fn store.Func) error { return a.db.Write(ctx, fn) }, status, request, keep, do)
}

// onceIn is once in a transaction of another kind.
func onceIn[T any](ctx context.Context, write func(context.Context, store.Func) error, status int, request any, keep func(T) T, do effect[T]) (out T, was replayed, err error) {
	c := callOf(ctx)
	asked, err := fingerprint(c, request)
	if err != nil {
		return out, isNew, err
	}
	err = write(ctx, func(ctx context.Context, tx *store.Tx) error {
		was = isNew
		if c.idempotencyKey == "" {
			out, err = do(ctx, tx)
			return err
		}
		given, claimed, err := userstore.In(tx).ClaimIdempotencyKey(ctx, c.token.User.ID, c.idempotencyKey, asked)
		if err != nil {
			return err
		}
		if !claimed {
			was = isReplayed
			return replay(given, asked, &out)
		}
		if out, err = do(ctx, tx); err != nil {
			return err
		}
		body, err := json.Marshal(keep(out))
		if err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		return userstore.In(tx).SaveAnswer(ctx, c.token.User.ID, c.idempotencyKey, status, string(body))
	})
	return out, was, err
}

// check keeps the key of a request that changes nothing from meaning two things.
func (a *API) check(ctx context.Context, request any) error {
	c := callOf(ctx)
	if c.idempotencyKey == "" {
		return nil
	}
	_, _, err := once(ctx, a, http.StatusOK, request, whole, func(context.Context, *store.Tx) (struct{}, error) { return struct{}{}, nil })
	return err
}

// answered gives the answer that is kept under the request's idempotency key,
// for a request whose effect cannot be part of the transaction that keeps it.
func answered[T any](ctx context.Context, a *API, request any) (out T, was replayed, err error) {
	c := callOf(ctx)
	if c.idempotencyKey == "" {
		return out, isNew, nil
	}
	asked, err := fingerprint(c, request)
	if err != nil {
		return out, isNew, err
	}
	err = a.db.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		given, found, err := userstore.In(tx).FindAnswer(ctx, c.token.User.ID, c.idempotencyKey)
		if err != nil || !found {
			return err
		}
		was = isReplayed
		return replay(given, asked, &out)
	})
	return out, was, err
}

// replay reads a kept answer, if it answers the same request.
func replay[T any](given userstore.Answer, asked string, out *T) error {
	if given.Request != asked {
		return newProblem(http.StatusUnprocessableEntity, codeIdempotencyMismatch, "this idempotency key was used for another request", "",
			client.Fault{Pointer: "/Idempotency-Key", Message: "was used for another request"})
	}
	if err := json.Unmarshal([]byte(given.Body), out); err != nil {
		return fmt.Errorf("read kept answer: %w", err)
	}
	return nil
}

// whole keeps an answer as it is.
func whole[T any](answer T) T { return answer }

// fingerprint tells requests apart. Spaces and the order of fields in the body
// make no difference.
func fingerprint(c *call, request any) (string, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return "", fmt.Errorf("compare request: %w", err)
	}
	sum := sha256.Sum256([]byte(c.method + "\n" + c.path + "\n" + string(body)))
	return hex.EncodeToString(sum[:]), nil
}
