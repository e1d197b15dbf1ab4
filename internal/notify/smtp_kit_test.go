package notify

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// postOffice is a mail server with faults on demand.
type postOffice struct {
	cert     *tls.Certificate // nil offers no STARTTLS
	implicit bool             // TLS from the first byte
	signIn   string           // what AUTH PLAIN must say, base64; empty asks for none
	mute     bool             // it accepts connections and says nothing

	mu      sync.Mutex
	refuse  map[string]int // address: how often it is refused; guarded by mu
	arrived chan parcel
	host    string
	port    int
}

// parcel is a mail that the server took.
type parcel struct {
	From, To, Text string
	Secure         bool
}

// certificate makes one for 127.0.0.1, and the pool that trusts it.
func certificate(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &s.TLS.Certificates[0], pool
}

// open starts the server; it closes with the test.
func (o *postOffice) open(t *testing.T) *postOffice {
	t.Helper()
	o.arrived = make(chan parcel, 100)
	if o.refuse == nil {
		o.refuse = map[string]int{}
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.host, o.port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			wg.Go(func() {
				defer stop()
				defer func() { _ = conn.Close() }()
				o.serve(conn)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return o
}

func (o *postOffice) serve(conn net.Conn) {
	if o.mute {
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	secure := o.implicit
	if secure {
		conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*o.cert}, MinVersion: tls.VersionTLS12})
	}
	in := bufio.NewReader(conn)
	say := func(line string) { _, _ = fmt.Fprintf(conn, "%s\r\n", line) }
	say("220 post office")
	var p parcel
	signedIn := o.signIn == ""
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			say("250-post office")
			if o.cert != nil && !secure {
				say("250-STARTTLS")
			}
			say("250 AUTH PLAIN")
		case "STARTTLS":
			say("220 go ahead")
			conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*o.cert}, MinVersion: tls.VersionTLS12})
			in, secure = bufio.NewReader(conn), true
		case "AUTH":
			if signedIn = rest == "PLAIN "+o.signIn; signedIn {
				say("235 welcome")
			} else {
				say("535 who are you?")
			}
		case "MAIL":
			if !signedIn {
				say("530 sign in first")
				continue
			}
			p = parcel{From: address(rest), Secure: secure}
			say("250 ok")
		case "RCPT":
			p.To = address(rest)
			if o.refused(p.To) {
				say("450 come back later")
				continue
			}
			say("250 ok")
		case "DATA":
			say("354 go on")
			p.Text = readText(in)
			o.arrived <- p
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("500 what?")
		}
	}
}

func address(rest string) string {
	_, rest, _ = strings.Cut(rest, "<")
	rest, _, _ = strings.Cut(rest, ">")
	return rest
}

func readText(in *bufio.Reader) string {
	var out strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil || line == ".\r\n" {
			return out.String()
		}
		out.WriteString(strings.TrimPrefix(line, "."))
	}
}

func (o *postOffice) refused(to string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refuse[to]--
	return o.refuse[to] >= 0
}

func (o *postOffice) wait(t *testing.T) parcel {
	t.Helper()
	select {
	case p := <-o.arrived:
		return p
	case <-time.After(patience):
		t.Fatal("no mail came")
		return parcel{}
	}
}
