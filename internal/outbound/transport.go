package outbound

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

const (
	maxHeaderBytes   = 1 << 20 // head of an answer
	idleTimeout      = 60 * time.Second
	maxIdleConns     = 100
	maxIdlePerServer = 8
)

// readTransport carries reads. It keeps connections and speaks HTTP/2 where
// the server does; it may resend a read when a kept connection turns out dead.
func readTransport(cfg Config, dialer *net.Dialer) *http.Transport {
	t := baseTransport(cfg, dialer)
	t.Protocols = protocols(true)
	t.MaxIdleConns = maxIdleConns
	t.MaxIdleConnsPerHost = maxIdlePerServer
	t.IdleConnTimeout = idleTimeout
	return t
}

// mutationTransport carries mutations. net/http resends a request only when
// its connection was used before (or, on HTTP/2, when the server gives a stream
// back), so a fresh HTTP/1.1 connection for each request rules that out. The
// price is a handshake for each mutation.
func mutationTransport(cfg Config, dialer *net.Dialer) *http.Transport {
	t := baseTransport(cfg, dialer)
	t.Protocols = protocols(false)
	t.DisableKeepAlives = true
	t.DialContext = permittedDial(t.DialContext) // a connection is of one request
	return t
}

// baseTransport has no proxy: one would dial in place of the guarded dialer.
func baseTransport(cfg Config, dialer *net.Dialer) *http.Transport {
	dial := dialer.DialContext
	if cfg.Dial != nil {
		dial = cfg.Dial
	}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
		TLSHandshakeTimeout:    cfg.TLSTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

func protocols(http2 bool) *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	p.SetHTTP2(http2)
	return &p
}

func (c *Client) transportFor(req *http.Request) *http.Transport {
	if EffectOf(req.Method) == Read {
		return c.reads
	}
	return c.mutations
}
