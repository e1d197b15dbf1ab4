package demo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// upstream is a server on loopback that stands for something in the world.
type upstream struct {
	url    string
	host   string // with the port
	server *http.Server
}

// openUpstream serves on a free port until close.
func openUpstream(ctx context.Context, name string, h http.Handler) (*upstream, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	host := listener.Addr().String()
	u := &upstream{url: "http://" + host, host: host, server: &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = u.server.Serve(listener) }() // it ends with close
	return u, nil
}

func (u *upstream) close() { _ = u.server.Close() }

// teller is told what an upstream saw, for the story.
type teller func(what, words string)

// outside is everything that the server of the demo talks to.
type outside struct {
	desk   *desk
	market *market
	poet   *poet
}

func openOutside(ctx context.Context, tell teller) (out outside, err error) {
	if out.desk, err = openDesk(ctx, tell); err != nil {
		return out, err
	}
	if out.market, err = openMarket(ctx, time.Now(), tell); err != nil {
		out.close()
		return out, err
	}
	if out.poet, err = openPoet(ctx, tell); err != nil {
		out.close()
		return out, err
	}
	return out, nil
}

func (o outside) close() {
	if o.desk != nil {
		o.desk.close()
	}
	if o.market != nil {
		o.market.close()
	}
	if o.poet != nil {
		o.poet.close()
	}
}
