package smtp

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"net"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// connect dials the server, secures the connection and logs in. Whatever it
// fails with, no message was sent.
func (s *Server) connect(ctx context.Context) (*dialogue, error) {
	conn, err := s.env.Dial(ctx, "tcp", s.address())
	if err != nil {
		return nil, connector.DialFault(s.address(), err)
	}
	if s.tls == tlsNone && !isLocal(conn.RemoteAddr()) {
		_ = conn.Close()
		return nil, &connector.Error{
			Class: pawl.ClassPermission, Code: "not_secure", NotApplied: true,
			Msg: "without TLS, mail goes to loopback and private addresses only", Hint: "Set tls: starttls or tls: implicit.",
		}
	}
	d := newDialogue(ctx, conn)
	if err := s.introduce(d); err != nil {
		d.quit()
		return nil, err
	}
	return d, nil
}

// isLocal reports whether an address is not reached through the internet.
func isLocal(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := tcp.AddrPort().Addr().Unmap()
	return ip.IsLoopback() || ip.IsPrivate()
}

// introduce does all that comes before a message.
func (s *Server) introduce(d *dialogue) error {
	if s.tls == tlsImplicit {
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
	if s.tls == tlsStartTLS {
		if err := s.startTLS(d); err != nil {
			return err
		}
	}
	if s.username == "" {
		return nil
	}
	return s.logIn(d)
}

// startTLS changes to TLS. Nothing that was said before counts afterwards.
func (s *Server) startTLS(d *dialogue) error {
	if _, offered := d.extensions["STARTTLS"]; !offered {
		return &connector.Error{
			Class: pawl.ClassPrecondition, Code: "no_tls", NotApplied: true,
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
	conn := tls.Client(d.conn, &tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12})
	if err := conn.HandshakeContext(d.ctx); err != nil {
		if fault := d.ended(); fault != nil {
			return fault
		}
		return &connector.Error{
			Class: pawl.ClassTransient, Code: "tls", NotApplied: true, NotSent: true, Err: err,
			Msg: "no secure connection: " + tlsReason(err),
		}
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
		r, err = d.command("AUTH PLAIN %s", encode([]byte("\x00"+s.username+"\x00"+s.password)))
	case slices.Contains(offered, "LOGIN"):
		for _, line := range []string{"AUTH LOGIN", encode([]byte(s.username)), encode([]byte(s.password))} {
			if r, err = d.command("%s", line); err != nil || r.code != 334 {
				break
			}
		}
	default:
		return &connector.Error{
			Class: pawl.ClassPrecondition, Code: "no_login", NotApplied: true,
			Msg: "the server offers no way to log in by PLAIN or LOGIN", Hint: "Leave out username and password if it needs none.",
		}
	}
	if err == nil && !r.ok() && r.code >= 500 {
		return s.notLetIn(r)
	}
	return d.check("AUTH", r, err)
}
