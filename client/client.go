package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
)

const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 30 * time.Second // for a whole request, streams apart
	idleConns     = 16               // are kept, so that requests beside each other need no new one
	idleTime      = 60 * time.Second // less than the server keeps them
	removeTimeout = 10 * time.Minute // for a removal that takes many rows along
	maxAnswer     = 64 << 20         // bytes
	pageSize      = 200
)

// Config says which server a Client talks to, and as whom.
type Config struct {
	URL       string // such as http://127.0.0.1:7295
	Token     string // empty asks as nobody
	UserAgent string // how the program is called in the server's log; empty is pawl-go

	// Renew is the token as it is now, asked for when the server does not know
	// the one that it was given. Nil: there is no other.
	Renew func() string

	// Patience is how long to wait for a server that does not listen yet. It is
	// asked again and again. Nil: do not wait.
	Patience func() time.Duration

	// Hints say what the user of the program can do about an error that only the
	// program can explain.
	Hints Hints
}

// Hints are the hints of errors about the way to a server. What is empty is told
// in general words.
type Hints struct {
	NoToken     string // the server wants a token, and there is none
	BadToken    string // the server does not know the token
	Unreachable string // nothing answers
	NotPawl     string // what answers does not look like a Pawl server
}

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
	cfg  Config

	mu    sync.Mutex
	token string // guarded by mu
}

// New makes a client. It does not talk to the server yet.
func New(cfg Config) (*Client, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, &pawl.Error{Code: pawl.CodeUsage, Msg: fmt.Sprintf("%q is not an address of a server", cfg.URL), Hint: "Use a URL such as http://127.0.0.1:7295."}
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &Client{
		base: base, token: cfg.Token, cfg: cfg,
		http: &http.Client{
			Transport: &http.Transport{
				DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, Proxy: http.ProxyFromEnvironment,
				MaxIdleConnsPerHost: idleConns, IdleConnTimeout: idleTime,
			},
			// A token is for the server that was named, and for no other.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// URL is where the server is, without a password.
func (c *Client) URL() string { return c.base.Redacted() }

// Local reports whether a URL names this machine by its loopback address.
func Local(serverURL string) bool {
	u, err := url.Parse(serverURL)
	if err != nil {
		return false
	}
	if strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

// Get reads one thing.
func (c *Client) Get(ctx context.Context, path string) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, path, nil, nil)
}

// GetWith reads one thing with parameters.
func (c *Client) GetWith(ctx context.Context, path string, query url.Values) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, path, query, nil)
}

// Put sends body, which replaces the thing there, and returns the answer.
func (c *Client) Put(ctx context.Context, path string, body any) (json.RawMessage, error) {
	return c.call(ctx, http.MethodPut, path, nil, body)
}

// Patch sends body, whose fields are changed in the thing there.
func (c *Client) Patch(ctx context.Context, path string, body any) (json.RawMessage, error) {
	return c.call(ctx, http.MethodPatch, path, nil, body)
}

// Post sends body, which may be nil, and returns the answer.
func (c *Client) Post(ctx context.Context, path string, body any) (json.RawMessage, error) {
	return c.call(ctx, http.MethodPost, path, nil, body)
}

// Delete removes one thing.
func (c *Client) Delete(ctx context.Context, path string) error {
	_, err := c.call(ctx, http.MethodDelete, path, nil, nil)
	return err
}

// DeleteWith removes one thing with parameters, and returns the answer, which
// may take minutes and may be empty.
func (c *Client) DeleteWith(ctx context.Context, path string, query url.Values) (json.RawMessage, error) {
	return c.callWithin(ctx, removeTimeout, http.MethodDelete, path, query, nil)
}

// List reads up to limit things, page by page; limit 0 is all. It reports
// whether there are more.
func (c *Client) List(ctx context.Context, path string, query url.Values, limit int) (items []json.RawMessage, more bool, err error) {
	ask := url.Values{}
	maps.Copy(ask, query)
	for {
		want := pageSize
		if limit > 0 {
			want = min(want, limit-len(items))
		}
		ask.Set("limit", strconv.Itoa(want))
		raw, err := c.call(ctx, http.MethodGet, path, ask, nil)
		if err != nil {
			return nil, false, err
		}
		var page Page[json.RawMessage]
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, false, c.strange("a list that cannot be read", err)
		}
		items = append(items, page.Items...)
		if page.NextCursor == "" || (limit > 0 && len(items) >= limit) {
			return items, page.NextCursor != "", nil
		}
		if string(page.NextCursor) == ask.Get("cursor") {
			return nil, false, c.strange("the same page of a list twice", nil)
		}
		ask.Set("cursor", string(page.NextCursor))
	}
}

// Request is what is asked of the server.
type Request struct {
	Method, Path string
	Query        url.Values
	Header       http.Header // beside those that every request has
	Body         any         // nil has none
}

// Send sends a request and returns the body of a good answer.
func (c *Client) Send(ctx context.Context, r Request) (json.RawMessage, error) {
	raw, _, err := c.send(ctx, answerTimeout, r)
	return raw, err
}

// SendTagged is Send, with the tag of the thing as it is now: a change that names
// the tag is refused if it has changed since. Empty if it is not there.
func (c *Client) SendTagged(ctx context.Context, r Request) (raw json.RawMessage, tag string, err error) {
	raw, header, err := c.send(ctx, answerTimeout, r)
	return raw, header.Get("ETag"), err
}

// call sends one request and returns the body of a good answer.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body any) (json.RawMessage, error) {
	return c.callWithin(ctx, answerTimeout, method, path, query, body)
}

func (c *Client) callWithin(ctx context.Context, timeout time.Duration, method, path string, query url.Values, body any) (json.RawMessage, error) {
	raw, _, err := c.send(ctx, timeout, Request{Method: method, Path: path, Query: query, Body: body})
	return raw, err
}

func (c *Client) send(ctx context.Context, timeout time.Duration, r Request) (json.RawMessage, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, raw, err := c.answer(ctx, r) //nolint:bodyclose // answer does
	switch {
	case err != nil:
		return nil, nil, err
	case resp.StatusCode >= 300:
		return nil, nil, c.problem(resp, raw)
	case len(raw) > 0 && !json.Valid(raw):
		return nil, nil, c.strange("something that is not JSON", nil)
	}
	return raw, resp.Header, nil
}

// answer sends a request and reads what is answered, whatever it is.
func (c *Client) answer(ctx context.Context, r Request) (*http.Response, []byte, error) {
	req, err := c.request(ctx, r.Method, r.Path, r.Query, r.Body)
	if err != nil {
		return nil, nil, err
	}
	maps.Copy(req.Header, r.Header)
	resp, err := c.do(req)
	if err != nil {
		return nil, nil, c.unreachable(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, nil, c.unreachable(ctx, err)
	}
	return resp, raw, nil
}

func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	target := c.base.JoinPath(path)
	target.RawQuery = query.Encode()
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, target.String(), content)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", cmp.Or(c.cfg.UserAgent, "pawl-go"))
	c.authorize(req)
	return req, nil
}
