package sqltool

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// proxy stands between a client and PostgreSQL and cuts their connection at a
// chosen message.
type proxy struct {
	t        *testing.T
	listener net.Listener
	server   string

	mu    sync.Mutex
	plan  *cut // guarded by mu; nil lets everything pass
	seen  int  // guarded by mu; messages of the client since the plan was made
	fired bool // guarded by mu
}

// cut is the end of a connection at the nth message of the client.
type cut struct {
	message int
	how     string
}

// The ways to cut a connection at a message.
const (
	cutBefore   = "the message is lost"
	cutAtOnce   = "the message is sent and the connection cut"
	cutAnswered = "the message is answered and the answer lost"
)

// newProxy returns the proxy and the URL that leads through it.
func newProxy(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: listener, server: u.Host}
	u.Host = listener.Addr().String()
	u.RawQuery = "sslmode=disable"
	var open sync.WaitGroup
	open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
	})
	return p, u.String()
}

// arm makes the plan for the messages from now on.
func (p *proxy) arm(c *cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.seen, p.fired = c, 0, false
}

// met reports whether the connection was cut since the last plan.
func (p *proxy) met() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fired
}

// next is what to do with the next message of a client; empty is to pass it.
func (p *proxy) next() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan == nil {
		return ""
	}
	p.seen++
	if p.seen != p.plan.message {
		return ""
	}
	p.fired = true
	return p.plan.how
}

// serve passes messages on until one side ends or the plan says so.
func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	answers := &gate{to: client, heard: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(answers, server)
		answers.hear()
		_ = client.Close()
	}()
	p.pass(client, server, answers)
	_ = server.Close()
	<-done
}

// pass reads the messages of the client one by one. The first has no type.
func (p *proxy) pass(client io.Reader, server io.Writer, answers *gate) {
	for first := true; ; first = false {
		message, err := readMessage(client, first)
		if err != nil {
			return
		}
		how := p.next()
		if how == cutBefore {
			return
		}
		if how == cutAnswered {
			answers.swallow()
		}
		if _, err := server.Write(message); err != nil || how == cutAtOnce {
			return
		}
		if how == cutAnswered {
			// Query and Sync are what the server answers to; for the others of
			// a group this lets the group be seen whole.
			for !first && !strings.ContainsRune("QSXp", rune(message[0])) {
				if message, err = readMessage(client, false); err != nil {
					return
				}
				_, _ = server.Write(message)
			}
			answers.wait()
			return
		}
	}
}

func readMessage(from io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[len(head)-4:])
	if length < 4 || length > 1<<20 {
		return nil, errors.New("not a message")
	}
	message := append(head, make([]byte, length-4)...)
	_, err := io.ReadFull(from, message[len(head):])
	return message, err
}

// gate passes what the server sends to the client, until it is to be lost.
type gate struct {
	to io.Writer

	mu    sync.Mutex
	shut  bool // guarded by mu
	once  sync.Once
	heard chan struct{} // closed when something was lost or the server went away
}

func (g *gate) Write(b []byte) (int, error) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if !shut {
		return g.to.Write(b)
	}
	g.hear()
	return len(b), nil
}

// swallow loses what comes from now on.
func (g *gate) swallow() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

func (g *gate) hear() { g.once.Do(func() { close(g.heard) }) }

// wait returns when something was lost, or nothing will come any more.
func (g *gate) wait() { <-g.heard }
