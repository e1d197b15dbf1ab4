package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/tool"
)

func (a *API) pinOf(p tool.Pin) client.Pin {
	class := "read"
	if p.Mutation {
		class = "mutation"
	}
	return client.Pin{
		Method: p.Method, Class: class, State: string(p.State), Pinned: client.NullString(p.Pinned), Now: client.NullString(p.Now),
		Change: client.NullString(a.tools.RedactText(p.Change)), Was: client.NullString(a.tools.RedactText(p.Was)), Is: client.NullString(a.tools.RedactText(p.Is)), Fixed: p.Fixed,
	}
}

// whyBlocked says why a method is refused.
func whyBlocked(p tool.Pin) string {
	switch {
	case p.Change != "":
		return sentence(p.Change)
	case p.Pinned == "":
		return "It was never pinned."
	}
	return "It is not what was pinned."
}

type listPinsInput struct {
	ConnectionPath
	PageInput
}

const pinCursor = "pin"

func (a *API) listPins(ctx context.Context, in *listPinsInput) (*pageOutput[client.Pin], error) {
	after, err := in.place(pinCursor)
	if err != nil {
		return nil, err
	}
	pins, err := a.pins(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	method := func(p tool.Pin) string { return p.Method }
	pins = following(pins, after, in.Limit+1, method)
	return &pageOutput[client.Pin]{cutPage(pins, in.Limit, pinCursor, method, a.pinOf)}, nil
}

// pins asks the other side.
func (a *API) pins(ctx context.Context, name string) ([]tool.Pin, error) {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	pins, err := a.tools.Pins(ctx, name)
	return pins, a.unreachable(err)
}

// unreachable makes a connection that does not answer an error of the request;
// the cause, which is for logs, is left out of what is told.
func (a *API) unreachable(err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return &pawl.Error{Code: pawl.CodeUnavailable, Op: "ask connection", Msg: a.tools.RedactText(e.Msg), Hint: a.tools.RedactText(e.Hint), Err: e.Err}
	}
	return err
}

type pinInput struct {
	OnceHeader
	ConnectionPath
	Body struct {
		Methods []string          `json:"methods" minItems:"1" maxItems:"2000" nullable:"false" doc:"What to agree to. A pin of what the other side no longer has is dropped."`
		Seen    map[string]string `json:"seen,omitempty" doc:"The hash of a method as you saw it in now, or an empty text if it was gone. If it has changed since, nothing is pinned."`
	}
}

type pinOutput struct {
	Replayed replayed `header:"Idempotency-Replayed"`
	Body     client.Pinned
}

// pinMethods agrees to methods. The pins are not in the database, so that two
// requests with one key at the same time may both be carried out: to agree to
// the same again changes nothing.
func (a *API) pinMethods(ctx context.Context, in *pinInput) (*pinOutput, error) {
	if kept, was, err := answered[client.Pinned](ctx, a, &in.Body); err != nil || was == isReplayed {
		return &pinOutput{was, kept}, err
	}
	pins, err := a.pins(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	seen := map[string]string{} // so that what is written down is what is pinned
	for _, p := range pins {
		seen[p.Method] = p.Now
	}
	maps.Copy(seen, in.Body.Seen)
	out := client.Pinned{Pinned: []string{}, Blocked: []string{}}
	var changed []tool.Pin
	for _, p := range pins {
		switch {
		case p.State == tool.PinHolds:
		case slices.Contains(in.Body.Methods, p.Method):
			out.Pinned = append(out.Pinned, p.Method)
			changed = append(changed, p)
		default:
			out.Blocked = append(out.Blocked, p.Method)
		}
	}
	// The pins themselves are not in the database. The line comes first, so that
	// nothing is ever agreed to without one; what is going to be refused gets none.
	if len(changed) > 0 && !refusesPins(pins, in.Body.Methods, in.Body.Seen) {
		if err := a.auditPins(ctx, "connection.pin", in.Name, changed); err != nil {
			return nil, err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	if err := a.tools.Pin(bounded, in.Name, in.Body.Methods, seen); err != nil {
		if len(changed) > 0 && !refusesPins(pins, in.Body.Methods, in.Body.Seen) { // it says that the line before it is void
			err = errors.Join(err, a.auditPins(ctx, "connection.pin_failed", in.Name, changed))
		}
		return nil, a.unreachable(err)
	}
	_, was, err := once(ctx, a, http.StatusOK, &in.Body, whole, func(context.Context, *store.Tx) (client.Pinned, error) { return out, nil })
	return &pinOutput{was, out}, err
}

// refusesPins reports whether the request cannot be met by what the other side
// said a moment ago.
func refusesPins(pins []tool.Pin, methods []string, seen map[string]string) bool {
	return slices.ContainsFunc(methods, func(method string) bool {
		at := slices.IndexFunc(pins, func(p tool.Pin) bool { return p.Method == method })
		if at < 0 || pins[at].Fixed {
			return true
		}
		hash, given := seen[method]
		return given && hash != pins[at].Now
	})
}

// auditPins writes down who agreed to what.
func (a *API) auditPins(ctx context.Context, action, name string, changed []tool.Pin) error {
	type entry struct {
		Was string `json:"was,omitempty"`
		Is  string `json:"is,omitempty"`
	}
	detail := map[string]entry{}
	for _, p := range changed {
		detail[p.Method] = entry{p.Pinned, p.Now}
	}
	who := actor(callOf(ctx).token)
	return a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Audit(ctx, who, action, "connection:"+name, detail)
	})
}
