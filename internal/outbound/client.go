package outbound

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/pawlrun/pawl"
)

// Defaults for the zero fields of Config.
const (
	DefaultMaxBody       = 64 << 20 // bytes
	DefaultMaxRedirects  = 5
	DefaultDialTimeout   = 10 * time.Second
	DefaultTLSTimeout    = 10 * time.Second
	DefaultHeaderTimeout = 5 * time.Minute
	DefaultUserAgent     = "pawl"
)

// Config says what a Client may do. The zero value is the safe default.
type Config struct {
	// AllowPrivate lists the ranges that may be called although they are not
	// public. Build it with ParsePrefixes.
	AllowPrivate []netip.Prefix
	// MaxBody caps what Client.ReadBody reads, in bytes after decompression.
	MaxBody int64
	// MaxRedirects is how many redirects one call follows. When negative, none
	// is followed and the 3xx answer is returned.
	MaxRedirects int
	// DialTimeout bounds one connection attempt, TLSTimeout one handshake.
	DialTimeout, TLSTimeout time.Duration
	// HeaderTimeout bounds the wait for the head of an answer in calls whose
	// context has no deadline; a deadline replaces it, in both directions.
	HeaderTimeout time.Duration
	// UserAgent is sent when the caller sets none.
	UserAgent string
	// Around is told of every request before it is sent, may add headers to it, and
	// gives what is told of its end: the answer, or the error. Nil is nobody.
	Around func(ctx context.Context, hop *http.Request) (end func(*http.Response, error))
	// RootCAs replaces the certificate authorities of the system when not nil.
	RootCAs *x509.CertPool
	// Dial takes the place of the network, and of the guard of private addresses,
	// in tests; nil is the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// withDefaults fills the zero fields.
func (cfg Config) withDefaults() Config {
	cfg.MaxBody = orDefault(cfg.MaxBody, DefaultMaxBody)
	cfg.MaxRedirects = orDefault(cfg.MaxRedirects, DefaultMaxRedirects)
	cfg.DialTimeout = orDefault(cfg.DialTimeout, DefaultDialTimeout)
	cfg.TLSTimeout = orDefault(cfg.TLSTimeout, DefaultTLSTimeout)
	cfg.HeaderTimeout = orDefault(cfg.HeaderTimeout, DefaultHeaderTimeout)
	cfg.UserAgent = orDefault(cfg.UserAgent, DefaultUserAgent)
	return cfg
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (cfg Config) validate() error {
	invalid := func(msg string) error {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "configure outbound calls", Msg: msg}
	}
	if cfg.MaxBody < 0 {
		return invalid("the body limit is negative")
	}
	if cfg.DialTimeout < 0 || cfg.TLSTimeout < 0 || cfg.HeaderTimeout < 0 {
		return invalid("a timeout is negative")
	}
	for _, p := range cfg.AllowPrivate {
		if !p.IsValid() {
			return invalid("a range of private addresses is not valid")
		}
	}
	return nil
}

// Client makes outbound calls. It is safe for concurrent use.
type Client struct {
	cfg       Config
	dialer    *net.Dialer
	reads     *http.Transport // shared connections, HTTP/1.1 and HTTP/2
	mutations *http.Transport // one connection per request, HTTP/1.1
}

// New makes a client. Close it when it is no longer used.
func New(cfg Config) (*Client, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	dialer := &net.Dialer{
		Timeout:        cfg.DialTimeout,
		ControlContext: newGuard(cfg.AllowPrivate).control,
	}
	return &Client{
		cfg:       cfg,
		dialer:    dialer,
		reads:     readTransport(cfg, dialer),
		mutations: mutationTransport(cfg, dialer),
	}, nil
}

// Close closes the idle connections. Calls under way are not disturbed.
func (c *Client) Close() {
	c.reads.CloseIdleConnections()
	c.mutations.CloseIdleConnections()
}

// Do sends req and returns the answer, whatever its status. ctx governs the
// call until the body of the answer is closed, which is the caller's duty.
// Redirects are followed by the rules in redirect.go; an answer that is not
// followed is returned as it is. Every error is an *Error. req itself is not
// changed, and its body is closed in every case.
func (c *Client) Do(ctx context.Context, req *http.Request) (*http.Response, error) {
	hop, err := c.firstHop(ctx, req)
	if err != nil {
		return nil, err
	}
	for followed := 0; ; followed++ {
		resp, failure := c.told(ctx, hop)
		if failure != nil {
			if followed > 0 {
				failure.Reason += " (redirected from " + excerpt(req.URL.Host) + ")"
			}
			return nil, failure
		}
		if !c.follows(hop, resp) {
			return resp, nil
		}
		// The rest of the body is not read: a server could make that last.
		_ = resp.Body.Close()
		hop, err = c.redirect(hop, resp, followed)
		if err != nil {
			return nil, err
		}
	}
}

// told sends a request, and tells whoever wants to know.
func (c *Client) told(ctx context.Context, hop *http.Request) (*http.Response, *Error) {
	if c.cfg.Around == nil {
		return c.send(ctx, hop)
	}
	end := c.cfg.Around(ctx, hop)
	resp, failure := c.send(ctx, hop)
	if failure != nil {
		end(nil, failure)
	} else {
		end(resp, nil)
	}
	return resp, failure
}

// send makes one request and classifies its failure.
func (c *Client) send(ctx context.Context, hop *http.Request) (*http.Response, *Error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopWaiting := c.limitWait(ctx, cancel)
	defer stopWaiting()

	var p progress
	if EffectOf(hop.Method) != Read {
		p.permission = askPermit(ctx)
	}
	if p.permission.ask() != nil {
		cancel(nil)
		if hop.Body != nil {
			_ = hop.Body.Close()
		}
		return nil, p.notPermitted(hop)
	}
	resp, err := c.transportFor(hop).RoundTrip(hop.WithContext(p.watch(p.permission.attach(ctx))))
	if err != nil {
		e := p.explain(ctx, hop, err)
		cancel(nil)
		return nil, e
	}
	resp.Body = &answerBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, resp: resp}
	return resp, nil
}

// limitWait cancels a call that has no deadline when the head of the answer
// does not come in time. The returned function ends the watch.
func (c *Client) limitWait(ctx context.Context, cancel context.CancelCauseFunc) func() {
	if _, ok := ctx.Deadline(); ok {
		return func() {}
	}
	timer := time.AfterFunc(c.cfg.HeaderTimeout, func() { cancel(context.DeadlineExceeded) })
	return func() { timer.Stop() }
}

// Dial connects to an address that may be called, for whoever speaks something
// else than HTTP. An address that may not be called is an *Error.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := permittedDial(c.dialer.DialContext)(askPermit(ctx).attach(ctx), network, address)
	if blocked, ok := errors.AsType[*refusal](err); ok { // the dialer's own text names the address
		host, _, _ := net.SplitHostPort(address)
		reason, hint := blocked.describe(host)
		return nil, &Error{Kind: KindBlocked, Class: pawl.ClassPermission, Method: "dial", Host: excerpt(address), Reason: reason, Hint: hint}
	}
	return conn, err
}
