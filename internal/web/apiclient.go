package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// inside asks the API of the same process, as the holder of a token.
type apiClient struct{ api http.Handler }

// get reads something. query may be nil.
func (i apiClient) get(ctx context.Context, token, path string, query url.Values, out any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return i.call(ctx, token, http.MethodGet, path, nil, out)
}

// post asks for a change. body and out may be nil.
func (i apiClient) post(ctx context.Context, token, path string, body, out any) error {
	return i.call(ctx, token, http.MethodPost, path, body, out)
}

// remove asks for something to be removed.
func (i apiClient) remove(ctx context.Context, token, path string) error {
	return i.call(ctx, token, http.MethodDelete, path, nil, nil)
}

func (i apiClient) call(ctx context.Context, token, method, path string, body, out any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return fmt.Errorf("write a question to the API: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("ask the API: %w", err)
	}
	r.RequestURI = path
	r.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	i.api.ServeHTTP(w, r)
	if w.status >= http.StatusMultipleChoices {
		return refusalOf(w)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(w.body.Bytes(), out); err != nil {
		return fmt.Errorf("read the API's answer: %w", err)
	}
	return nil
}

// refusal is a problem that the API answered with.
type refusal struct{ client.Problem }

func (p *refusal) Error() string { return p.Detail }

// Is makes errors.Is(err, pawl.ErrNotFound) and the like work.
func (p *refusal) Is(target error) bool {
	e, ok := target.(*pawl.Error)
	return ok && e.Msg == "" && e.Code.HTTPStatus() == p.Status
}

func refusalOf(w *recorder) error {
	p := &refusal{}
	if err := json.Unmarshal(w.body.Bytes(), p); err != nil || p.Detail == "" {
		return fmt.Errorf("the API answered %d and no problem", w.status)
	}
	p.Status = w.status
	return p
}

// recorder keeps an answer of the API.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }
