package notify

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"net"
	netmail "net/mail"
	"net/netip"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/mail"
	"github.com/pawlrun/pawl/internal/outbound"
)

// Ways to a mail server.
const (
	TLSStart    = "starttls" // begins plain and must turn to TLS before anything is said
	TLSImplicit = "tls"      // TLS from the first byte
	TLSNone     = "none"     // for a server on this machine only
)

// Mail is the mail server through which notices go, and to whom.
type Mail struct {
	Host string
	Port int // zero is 587, or 465 for TLSImplicit, or 25 for TLSNone
	// TLS is one of the ways above. Empty is TLSStart, and TLSNone for a
	// server on this machine.
	TLS      string
	Username string // empty signs in to nothing
	Password string
	From     string // an address, with or without a name
	To       []string
	RootCAs  *x509.CertPool // nil is those of the system
}

// mailbox sends letters to one address. Each address is a target of its own,
// because a server may take a mail for one and not for another; all get the
// same mail, with all addresses in its headers.
type mailbox struct {
	server *mail.Server
	from   netmail.Address
	all    []netmail.Address
	to     string
}

func newMailboxes(m Mail, client *outbound.Client) ([]*mailbox, error) {
	server, err := newServer(m, client)
	if err != nil {
		return nil, err
	}
	from, err := parseAddress("the sender of mails", m.From)
	if err != nil {
		return nil, err
	}
	if len(m.To) == 0 {
		return nil, invalid("mails have no recipient", "Give at least one address.")
	}
	var all []netmail.Address
	for _, text := range m.To {
		to, err := parseAddress("a receiver of mails", text)
		if err != nil {
			return nil, err
		}
		all = append(all, to)
	}
	var boxes []*mailbox
	for _, to := range all {
		boxes = append(boxes, &mailbox{server: server, from: from, all: all, to: to.Address})
	}
	return boxes, nil
}

func parseAddress(who, text string) (netmail.Address, error) {
	const hint = "Use an address such as ops@example.com."
	if text == "" {
		return netmail.Address{}, invalid(who+" is not given", hint)
	}
	a, fault := mail.ParseAddress(text)
	if fault != "" {
		return a, invalid(fmt.Sprintf("%s %q %s", who, text, fault), hint)
	}
	return a, nil
}

// newServer checks how a mail server is to be reached.
func newServer(m Mail, client *outbound.Client) (*mail.Server, error) {
	if m.Host == "" || strings.ContainsAny(m.Host, ":/@ ") && net.ParseIP(m.Host) == nil {
		return nil, invalid(fmt.Sprintf("%q is not the name of a mail server", m.Host), "Use a host such as smtp.example.com.")
	}
	s := &mail.Server{
		Host: m.Host, Port: m.Port, Username: m.Username, Password: m.Password, Roots: m.RootCAs,
		Plain: netip.Addr.IsLoopback, Timeout: attemptTime,
		Dial: client.Dial,
	}
	ip := net.ParseIP(m.Host)
	local := m.Host == "localhost" || ip != nil && ip.IsLoopback()
	port := 0
	switch way := m.TLS; {
	case way == TLSStart || way == "" && !local:
		s.TLS, port = mail.TLSStart, 587
	case way == TLSImplicit:
		s.TLS, port = mail.TLSImplicit, 465
	case way != TLSNone && way != "":
		return nil, invalid(fmt.Sprintf("%q is not a way to a mail server", way), "Use starttls, tls or none.")
	case !local:
		return nil, invalid("mails would leave this machine without TLS", "Use starttls or tls; none is for localhost.")
	default:
		s.TLS, port = mail.TLSNone, 25
	}
	s.Port = cmp.Or(s.Port, port)
	if s.Port < 0 || s.Port > 65535 {
		return nil, invalid(fmt.Sprintf("%d is not a port", s.Port), "Use 587 for starttls or 465 for tls.")
	}
	if (m.Username == "") != (m.Password == "") {
		return nil, invalid("signing in to the mail server needs both a user name and a password", "Give both, or none.")
	}
	return s, nil
}

// send hands a mail over. It returns nil once the server has said that it takes
// care of it.
func (b *mailbox) send(ctx context.Context, l letter, _ time.Time) error {
	encoded := b.message(l).Encode()
	encoded.Recipients = []string{b.to}
	if _, err := b.server.Send(ctx, encoded); err != nil {
		return fmt.Errorf("%s: %w", b.server.Host, err)
	}
	return nil
}

// message depends on the notice alone, so that every attempt sends the same.
func (b *mailbox) message(l letter) mail.Message {
	text := l.mailText()
	return mail.Message{
		Key: l.ID, Date: l.At, From: b.from, To: b.all, Subject: l.subject(), Text: &text,
		Headers: []mail.Header{{Name: "Auto-Submitted", Value: "auto-generated"}}, // so that nobody's absence answers
	}
}

func (l letter) subject() string {
	name := string(l.Kind) + " " + oneLine(l.Lane, 100)
	switch l.What {
	case lane.NoticeRecovered:
		return "[Pawl] Works again: " + name
	case lane.NoticeReminder:
		return "[Pawl] Still needs attention: " + name
	case lane.NoticeAttention:
	}
	return "[Pawl] Needs attention: " + name
}

func (l letter) mailText() string {
	var out strings.Builder
	if l.Text != "" {
		out.WriteString(l.Text + "\r\n\r\n")
	}
	for _, line := range [][2]string{
		{string(l.Kind), l.Lane}, {"issue", l.Issue}, {"run", l.RunID}, {"at", pawl.FormatTime(l.At)}, {"see", l.URL},
	} {
		if line[1] != "" {
			fmt.Fprintf(&out, "%-9s %s\r\n", line[0]+":", line[1])
		}
	}
	return out.String()
}
