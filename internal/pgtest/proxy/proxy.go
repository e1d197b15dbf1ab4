package proxy

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy stands before one PostgreSQL server.
type Proxy struct {
	listener net.Listener
	server   string // host:port
	url      string
	served   sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond         // guards what follows
	links   map[*link]struct{} // that are open
	refuse  bool               // new connections are ended at once
	mute    bool               // new connections are accepted and never answered
	stalled bool               // nothing passes; it does later
	delay   time.Duration      // before anything passes to the client
	lose    []*loss
	lost    int
	closed  bool
}

// loss is an order to lose answers.
type loss struct {
	tag  string
	left int // negative: all
}

// New starts a proxy before the server of a URL, until the test ends.
func New(t testing.TB, serverURL string) *Proxy {
	t.Helper()
	p, err := Start(t.Context(), serverURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Start starts a proxy before the server of a URL; Close ends it.
func Start(ctx context.Context, serverURL string) (*Proxy, error) {
	u, err := url.Parse(serverURL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("proxy: %q is no URL of a server", serverURL)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{listener: listener, server: u.Host, links: map[*link]struct{}{}}
	if u.Port() == "" {
		p.server = net.JoinHostPort(u.Hostname(), "5432")
	}
	p.changed = sync.NewCond(&p.mu)
	u.Host = listener.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	p.url = u.String()
	p.served.Go(p.accept)
	return p, nil
}

// Close ends the proxy and what goes through it.
func (p *Proxy) Close() {
	p.change(func() { p.closed = true })
	_ = p.listener.Close()
	p.Cut()
	p.served.Wait()
}

// URL is the database behind the proxy.
func (p *Proxy) URL() string { return p.url }

// Host is where the proxy listens: host and port.
func (p *Proxy) Host() string { return p.listener.Addr().String() }

func (p *Proxy) change(fn func()) {
	p.mu.Lock()
	fn()
	p.changed.Broadcast()
	p.mu.Unlock()
}

// Delay makes every answer wait.
func (p *Proxy) Delay(d time.Duration) { p.change(func() { p.delay = d }) }

// Stall stops all traffic, of new connections too, until Resume; then what was
// sent arrives. So does a server that stands still.
func (p *Proxy) Stall() { p.change(func() { p.stalled = true }) }

// Resume ends Stall, Refuse, Mute and Delay.
func (p *Proxy) Resume() {
	p.change(func() { p.stalled, p.refuse, p.mute, p.delay = false, false, false, 0 })
}

// HalfOpen makes the connections that are open now silently dead: what is sent
// is swallowed, nothing comes back, and nobody is told. New ones work. So does a
// firewall that forgot.
func (p *Proxy) HalfOpen() {
	p.change(func() {
		for l := range p.links {
			l.dead = true
		}
	})
}

// Mute accepts new connections and never answers them.
func (p *Proxy) Mute() { p.change(func() { p.mute = true }) }

// Refuse ends new connections at once.
func (p *Proxy) Refuse() { p.change(func() { p.refuse = true }) }

// Cut resets the connections that are open now.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
	p.changed.Broadcast()
}

// LoseAnswers loses the next n answers to statements whose command tag begins
// with the given one ("COMMIT", "INSERT", ...), all of them if n is negative: the
// server carries the statement out, commits what that implies, and the connection
// breaks before the client hears of it.
func (p *Proxy) LoseAnswers(tag string, n int) {
	p.change(func() { p.lose = append(p.lose, &loss{tag, n}) })
}

// KeepAnswers ends LoseAnswers.
func (p *Proxy) KeepAnswers() { p.change(func() { p.lose = nil }) }

// Lost tells how many answers were lost.
func (p *Proxy) Lost() int { p.mu.Lock(); defer p.mu.Unlock(); return p.lost }

// Open tells how many connections are open.
func (p *Proxy) Open() int { p.mu.Lock(); defer p.mu.Unlock(); return len(p.links) }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.served.Go(func() { p.serve(client) })
	}
}

// link is one connection: the client's half and the server's.
type link struct {
	p              *Proxy
	client, server net.Conn
	dead           bool // guarded by p.mu: swallows everything
	broken         bool // guarded by p.mu
}

// cut resets both halves; p.mu is held.
func (l *link) cut() {
	l.broken = true
	for _, c := range []net.Conn{l.client, l.server} {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		if c != nil {
			_ = c.Close()
		}
	}
}

func (p *Proxy) serve(client net.Conn) {
	l := &link{p: p, client: client}
	p.mu.Lock()
	if p.refuse || p.closed {
		l.cut()
		p.mu.Unlock()
		return
	}
	l.dead = p.mute
	p.links[l] = struct{}{}
	p.mu.Unlock()
	defer p.forget(l)
	server, err := net.DialTimeout("tcp", p.server, 10*time.Second) //nolint:noctx // the test's own server
	if err != nil {
		return
	}
	p.mu.Lock()
	l.server = server
	if l.broken {
		l.cut()
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { l.copy(server, client, nil); p.ended(l) })
	wg.Go(func() { l.copy(client, server, &answers{p: p}); p.ended(l) })
	wg.Wait()
}

// ended: one half of a link is closed. The other half of a dead one does not
// hear of it.
func (p *Proxy) ended(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !l.dead {
		l.cut()
	}
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.cut()
	delete(p.links, l)
}

// pass waits while nothing passes, and tells what becomes of what was read.
func (l *link) pass(toClient bool) (swallow, ok bool) {
	p := l.p
	p.mu.Lock()
	for p.stalled && !l.broken && !l.dead && !p.closed {
		p.changed.Wait()
	}
	delay := p.delay
	swallow, ok = l.dead, !l.broken && !p.closed
	p.mu.Unlock()
	if toClient && delay > 0 && ok {
		<-time.After(delay)
	}
	return swallow, ok
}

func (l *link) copy(to, from net.Conn, watch *answers) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			swallow, ok := l.pass(watch != nil)
			if !ok {
				return
			}
			if watch != nil && watch.lose(buf[:n]) {
				return
			}
			if !swallow {
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// matching finds an order to lose an answer with this tag.
func (p *Proxy) matching(tag string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lose {
		if l.left != 0 && strings.HasPrefix(tag, l.tag) {
			if l.left > 0 {
				l.left--
			}
			p.lost++
			return true
		}
	}
	return false
}
