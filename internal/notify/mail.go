package notify

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
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
// same mail, with all addresses in its head.
type mailbox struct {
	server server
	from   *mail.Address
	all    []*mail.Address
	to     *mail.Address
}

func newMailboxes(m Mail, client *outbound.Client) ([]*mailbox, error) {
	s, err := newServer(m, client)
	if err != nil {
		return nil, err
	}
	from, err := parseAddress(m.From)
	if err != nil {
		return nil, invalid("the sender of mails "+err.Error(), "Use an address such as pawl@example.com.")
	}
	if len(m.To) == 0 {
		return nil, invalid("mails have nobody to go to", "Give at least one address.")
	}
	var all []*mail.Address
	for _, text := range m.To {
		to, err := parseAddress(text)
		if err != nil {
			return nil, invalid("a receiver of mails "+err.Error(), "Use addresses such as ops@example.com.")
		}
		all = append(all, to)
	}
	var boxes []*mailbox
	for _, to := range all {
		boxes = append(boxes, &mailbox{server: s, from: from, all: all, to: to})
	}
	return boxes, nil
}

func parseAddress(text string) (*mail.Address, error) {
	if text == "" {
		return nil, fmt.Errorf("is not given")
	}
	a, err := mail.ParseAddress(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no address", text)
	}
	if strings.ContainsFunc(a.Address, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("%q has characters that not every mail server knows", text)
	}
	return a, nil
}

func (b *mailbox) send(ctx context.Context, l letter, _ time.Time) error {
	text, err := b.compose(l)
	if err != nil {
		return fmt.Errorf("write the mail: %w", err)
	}
	return b.server.deliver(ctx, b.from.Address, b.to.Address, text)
}

// compose writes a mail. It depends on the notice alone, so that every attempt
// sends the same.
func (b *mailbox) compose(l letter) ([]byte, error) {
	var to []string
	for _, a := range b.all {
		to = append(to, a.String())
	}
	_, domain, _ := strings.Cut(b.from.Address, "@")
	var out bytes.Buffer
	for _, h := range [][2]string{
		{"From", b.from.String()},
		{"To", strings.Join(to, ",\r\n\t")},
		{"Subject", mime.QEncoding.Encode("utf-8", l.subject())},
		{"Date", l.At.Format(time.RFC1123Z)},
		{"Message-ID", "<" + l.ID + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"}, // so that nobody's absence answers
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		out.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	out.WriteString("\r\n")
	body := quotedprintable.NewWriter(&out)
	if _, err := body.Write([]byte(l.mailText())); err != nil {
		return nil, err
	}
	return out.Bytes(), body.Close()
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
