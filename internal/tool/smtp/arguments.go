package smtp

import (
	"bytes"
	"encoding/json"
	"maps"
	netmail "net/mail"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/mail"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits of arguments.
const (
	largestMessage   = 10 << 20 // bytes
	largestArguments = 16 << 20 // bytes
	mostRecipients   = 100
	mostHeaders      = 20
)

type arguments struct {
	To      list              `json:"to"`
	Cc      list              `json:"cc"`
	Bcc     list              `json:"bcc"`
	ReplyTo *string           `json:"replyTo"`
	Subject *string           `json:"subject"`
	Text    *string           `json:"text"`
	HTML    *string           `json:"html"`
	Headers map[string]string `json:"headers"`
}

// list is one text or several.
type list []string

// UnmarshalJSON reads a text as a list of one.
func (l *list) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil && !bytes.Equal(raw, []byte("null")) {
		*l = list{one}
		return nil
	}
	var several []string
	if err := json.Unmarshal(raw, &several); err != nil {
		return err
	}
	*l = several
	return nil
}

// parse reads the arguments of a call, which a script that nobody trusts made.
func parse(raw json.RawMessage) (mail.Message, error) {
	var a arguments
	if err := connector.DecodeArguments(raw, largestArguments, &a); err != nil {
		return mail.Message{}, err
	}
	var m mail.Message
	for _, part := range []struct {
		name  string
		given list
		into  *[]netmail.Address
	}{{"to", a.To, &m.To}, {"cc", a.Cc, &m.Cc}, {"bcc", a.Bcc, &m.Bcc}} {
		for _, text := range part.given {
			address, fault := mail.ParseAddress(text)
			if fault != "" {
				return mail.Message{}, badAddress(part.name, text, fault)
			}
			*part.into = append(*part.into, address)
		}
	}
	if a.ReplyTo != nil {
		address, fault := mail.ParseAddress(*a.ReplyTo)
		if fault != "" {
			return mail.Message{}, badAddress("replyTo", *a.ReplyTo, fault)
		}
		m.ReplyTo = &address
	}
	switch n := len(m.To) + len(m.Cc) + len(m.Bcc); {
	case n == 0:
		return mail.Message{}, connector.BadArguments("Give at least one address in to, cc or bcc.", "there is no recipient")
	case n > mostRecipients:
		return mail.Message{}, connector.BadArguments("Make a call for each group of recipients.", "there are %d recipients, more than the %d allowed", n, mostRecipients)
	case a.Text == nil && a.HTML == nil:
		return mail.Message{}, connector.BadArguments("Give text, html, or both.", "there is neither text nor html")
	case a.Subject != nil && mail.LineFault(*a.Subject) != "":
		return mail.Message{}, connector.BadArguments("", "the subject %s", mail.LineFault(*a.Subject))
	}
	if a.Subject != nil {
		m.Subject = *a.Subject
	}
	m.Text, m.HTML = a.Text, a.HTML
	var err error
	m.Headers, err = parseHeaders(a.Headers)
	return m, err
}

func badAddress(name, text, fault string) error {
	return connector.BadArguments("An address looks like ann@example.com or Ann <ann@example.com>.", "%s: %s %s", name, pawl.Quote(text), fault)
}

// parseHeaders checks the headers that a script adds.
func parseHeaders(given map[string]string) ([]mail.Header, error) {
	if len(given) > mostHeaders {
		return nil, connector.BadArguments("", "there are %d headers, more than the %d allowed", len(given), mostHeaders)
	}
	var headers []mail.Header
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		switch fault := mail.LineFault(value); {
		case !mail.IsHeaderName(name):
			return nil, connector.BadArguments("", "headers: %s cannot be the name of a header", pawl.Quote(name))
		case mail.IsReservedHeader(name):
			return nil, connector.BadArguments("Use the argument for it, if there is one.", "headers: %s is set by Pawl", name)
		case fault != "":
			return nil, connector.BadArguments("", "headers: the value of %s %s", name, fault)
		case slices.ContainsFunc(headers, func(h mail.Header) bool { return strings.EqualFold(h.Name, name) }):
			return nil, connector.BadArguments("", "headers: %s is there twice", name)
		}
		headers = append(headers, mail.Header{Name: name, Value: value})
	}
	return headers, nil
}
