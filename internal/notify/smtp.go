package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/internal/outbound"
)

// server is a mail server. It is reached through the guarded dialer.
type server struct {
	host, address      string
	way                string // one of TLSStart, TLSImplicit, TLSNone
	username, password string
	tls                *tls.Config
	client             *outbound.Client
}

func newServer(m Mail, client *outbound.Client) (server, error) {
	if m.Host == "" || strings.ContainsAny(m.Host, ":/@ ") && net.ParseIP(m.Host) == nil {
		return server{}, invalid(fmt.Sprintf("%q is no mail server", m.Host), "Use a host such as smtp.example.com.")
	}
	way, port := m.TLS, m.Port
	switch {
	case way == "" && onThisMachine(m.Host):
		way = TLSNone
	case way == "":
		way = TLSStart
	}
	standard, known := map[string]int{TLSStart: 587, TLSImplicit: 465, TLSNone: 25}[way]
	if !known {
		return server{}, invalid(fmt.Sprintf("%q is no way to a mail server", way), "Use starttls, tls or none.")
	}
	if way == TLSNone && !onThisMachine(m.Host) {
		return server{}, invalid("mails would leave this machine without TLS", "Use starttls or tls; none is for localhost.")
	}
	if port == 0 {
		port = standard
	}
	if port < 0 || port > 65535 {
		return server{}, invalid(fmt.Sprintf("%d is no port", port), "Use 587 for starttls or 465 for tls.")
	}
	if (m.Username == "") != (m.Password == "") {
		return server{}, invalid("signing in to the mail server needs both a user name and a password", "Give both, or none.")
	}
	return server{
		host: m.Host, address: net.JoinHostPort(m.Host, strconv.Itoa(port)), way: way, username: m.Username, password: m.Password,
		tls: &tls.Config{ServerName: m.Host, MinVersion: tls.VersionTLS12, RootCAs: m.RootCAs}, client: client,
	}, nil
}

func onThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// deliver hands one mail over. It returns nil once the server has said that it
// takes care of it.
func (s server) deliver(ctx context.Context, from, to string, text []byte) error {
	conn, err := s.client.Dial(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("connect to the mail server: %w", err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends whatever waits for an answer
	defer stop()
	c, err := s.greet(ctx, conn)
	if err == nil {
		err = s.hand(c, from, to, text)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("gave up waiting: %w", context.Cause(ctx)) // and not that the connection is closed
		}
		return fmt.Errorf("%s: %w", s.host, err)
	}
	_ = c.Quit() // it has the mail, whatever it says now
	return nil
}

// greet begins the conversation.
func (s server) greet(ctx context.Context, conn net.Conn) (*smtp.Client, error) {
	if peer, ok := conn.RemoteAddr().(*net.TCPAddr); s.way == TLSNone && (!ok || !peer.IP.IsLoopback()) {
		return nil, errors.New("localhost is another machine here")
	}
	if s.way == TLSImplicit {
		secured := tls.Client(conn, s.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("no secure connection: %w", err)
		}
		conn = secured
	}
	c, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, fmt.Errorf("no greeting: %w", err)
	}
	return c, nil
}

// hand is the conversation after the greeting.
func (s server) hand(c *smtp.Client, from, to string, text []byte) error {
	if s.way == TLSStart {
		if offered, _ := c.Extension("STARTTLS"); !offered {
			return errors.New("the server does not offer STARTTLS")
		}
		if err := c.StartTLS(s.tls); err != nil {
			return fmt.Errorf("no secure connection: %w", err)
		}
	}
	if s.username != "" {
		if err := c.Auth(smtp.PlainAuth("", s.username, s.password, s.host)); err != nil {
			return fmt.Errorf("sign in: %w", err)
		}
	}
	if err := c.Mail(from); err != nil {
		return fmt.Errorf("the sender is refused: %w", err)
	}
	if err := c.Rcpt(to); err != nil {
		return fmt.Errorf("%s is refused: %w", to, err)
	}
	w, err := c.Data()
	if err != nil {
		return fmt.Errorf("the mail is refused: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("send the mail: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("the mail is refused: %w", err)
	}
	return nil
}
