package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
)

// TLS is how a connection is secured.
type TLS string

// The ways to secure a connection.
const (
	TLSStart    TLS = "starttls" // begins in clear and has to change to TLS
	TLSImplicit TLS = "implicit" // is TLS from the first byte
	TLSNone     TLS = "none"     // in clear; for the addresses that Plain allows
)

// Server is a mail server.
type Server struct {
	Host     string
	Port     int
	TLS      TLS
	Username string // empty: no login
	Password string
	Roots    *x509.CertPool // nil: those of the system

	// Dial connects to the server. Its errors are returned as they are.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Plain reports whether an address may be spoken to without TLS.
	Plain func(netip.Addr) bool
	// Timeout bounds a call up to the dot that ends a message and then the
	// wait for its answer, whatever the context of the call says.
	Timeout time.Duration
}

// Address is where the server is: host:port.
func (s *Server) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Test connects and logs in, and sends nothing.
func (s *Server) Test(ctx context.Context) (secure bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	d, err := s.connect(ctx)
	if err != nil {
		return false, err
	}
	defer d.quit()
	return d.secure, nil
}

// connect dials the server, secures the connection and logs in. Whatever it
// fails with, no message was sent.
func (s *Server) connect(ctx context.Context) (*dialogue, error) {
	conn, err := s.Dial(ctx, "tcp", s.Address())
	if err != nil {
		return nil, err
	}
	if s.TLS == TLSNone && !s.mayBePlain(conn.RemoteAddr()) {
		_ = conn.Close()
		return nil, &Error{
			Class: pawl.ClassPermission, Code: "not_secure",
			Msg: "without TLS, mail goes to local addresses only", Hint: "Set tls: starttls or tls: implicit.",
		}
	}
	d := newDialogue(ctx, conn)
	if err := s.introduce(d); err != nil {
		d.quit()
		return nil, err
	}
	return d, nil
}

func (s *Server) mayBePlain(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && s.Plain(tcp.AddrPort().Addr().Unmap())
}

// introduce does all that comes before a message.
func (s *Server) introduce(d *dialogue) error {
	if s.TLS == TLSImplicit {
		if err := s.secure(d); err != nil {
			return err
		}
	}
	greeting, _, err := d.read()
	if err := d.check("greet", greeting, err); err != nil {
		return err
	}
	hello, err := d.hello()
	if err := d.check("EHLO", hello, err); err != nil {
		return err
	}
	if s.TLS == TLSStart {
		if err := s.startTLS(d); err != nil {
			return err
		}
	}
	if s.Username == "" {
		return nil
	}
	return s.logIn(d)
}

// startTLS changes to TLS. Nothing that was said before counts afterwards.
func (s *Server) startTLS(d *dialogue) error {
	if _, offered := d.extensions["STARTTLS"]; !offered {
		return &Error{
			Class: pawl.ClassPrecondition, Code: "no_tls",
			Msg: "the server does not offer STARTTLS, which is required", Hint: "Use port 465 with tls: implicit, if the server has it.",
		}
	}
	start, err := d.command("STARTTLS")
	if err := d.check("STARTTLS", start, err); err != nil {
		return err
	}
	if d.reader.Buffered() > 0 { // somebody put words into the mouth of the server
		return d.lost(errReply)
	}
	if err := s.secure(d); err != nil {
		return err
	}
	hello, err := d.hello()
	return d.check("EHLO", hello, err)
}

// secure makes the connection one of TLS.
func (s *Server) secure(d *dialogue) error {
	conn := tls.Client(d.conn, &tls.Config{ServerName: s.Host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12})
	if err := conn.HandshakeContext(d.ctx); err != nil {
		if fault := d.ended(); fault != nil {
			return fault
		}
		return &Error{Class: pawl.ClassTransient, Code: "tls", Interrupted: true, Err: err, Msg: "no secure connection: " + tlsReason(err)}
	}
	d.conn, d.secure = conn, true
	d.reader.Reset(conn)
	return nil
}

// logIn gives name and password, by the first way that the server offers of
// those known here.
func (s *Server) logIn(d *dialogue) error {
	offered := strings.Fields(strings.ToUpper(d.extensions["AUTH"]))
	encode := base64.StdEncoding.EncodeToString
	var r reply
	var err error
	switch {
	case slices.Contains(offered, "PLAIN"):
		r, err = d.command("AUTH PLAIN %s", encode([]byte("\x00"+s.Username+"\x00"+s.Password)))
	case slices.Contains(offered, "LOGIN"):
		for _, line := range []string{"AUTH LOGIN", encode([]byte(s.Username)), encode([]byte(s.Password))} {
			if r, err = d.command("%s", line); err != nil || r.code != 334 {
				break
			}
		}
	default:
		return &Error{
			Class: pawl.ClassPrecondition, Code: "no_login",
			Msg: "the server offers no way to log in by PLAIN or LOGIN", Hint: "Leave out username and password if it needs none.",
		}
	}
	if err == nil && !r.ok() && r.code >= 500 {
		return &Error{
			Class: pawl.ClassAuth, Code: "auth", Msg: "the server does not let " + pawl.Quote(s.Username) + " in: " + r.String(), Hint: hintLogin,
		}
	}
	return d.check("AUTH", r, err)
}
