package smtp

import (
	"bytes"
	"encoding/json"
	"maps"
	netmail "net/mail"
	"slices"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Limits of arguments.
const (
	largestMessage   = 10 << 20 // bytes
	largestArguments = 16 << 20 // bytes
	mostRecipients   = 100
	mostHeaders      = 20
	longestLine      = 2000 // bytes of a subject or another header
	longestName      = 200  // bytes of the name of a recipient
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

// letter is a message that a script asks for, checked.
type letter struct {
	to, cc, bcc []netmail.Address
	replyTo     *netmail.Address
	subject     string
	text, html  *string
	headers     []header // sorted by name
}

type header struct{ name, value string }

// parse reads the arguments of a call, which a script that nobody trusts made.
func parse(raw json.RawMessage) (letter, error) {
	var a arguments
	if err := connector.DecodeArguments(raw, largestArguments, &a); err != nil {
		return letter{}, err
	}
	var l letter
	for _, part := range []struct {
		name  string
		given list
		into  *[]netmail.Address
	}{{"to", a.To, &l.to}, {"cc", a.Cc, &l.cc}, {"bcc", a.Bcc, &l.bcc}} {
		for _, text := range part.given {
			address, fault := parseAddress(text)
			if fault != "" {
				return letter{}, badAddress(part.name, text, fault)
			}
			*part.into = append(*part.into, address)
		}
	}
	if a.ReplyTo != nil {
		address, fault := parseAddress(*a.ReplyTo)
		if fault != "" {
			return letter{}, badAddress("replyTo", *a.ReplyTo, fault)
		}
		l.replyTo = &address
	}
	switch n := len(l.to) + len(l.cc) + len(l.bcc); {
	case n == 0:
		return letter{}, connector.BadArguments("Give at least one address in to, cc or bcc.", "there is no recipient")
	case n > mostRecipients:
		return letter{}, connector.BadArguments("Make a call for each group of recipients.", "there are %d recipients, more than the %d allowed", n, mostRecipients)
	case a.Text == nil && a.HTML == nil:
		return letter{}, connector.BadArguments("Give text, html, or both.", "there is neither text nor html")
	case a.Subject != nil && lineFault(*a.Subject) != "":
		return letter{}, connector.BadArguments("", "the subject %s", lineFault(*a.Subject))
	}
	if a.Subject != nil {
		l.subject = *a.Subject
	}
	l.text, l.html = a.Text, a.HTML
	var err error
	l.headers, err = parseHeaders(a.Headers)
	return l, err
}

func badAddress(name, text, fault string) error {
	return connector.BadArguments("An address looks like ann@example.com or Ann <ann@example.com>.", "%s: %s %s", name, pawl.Quote(text), fault)
}

// parseAddress reads one address, with or without a name. What would need
// quotes or more than ASCII in the dialogue with the server is refused: such
// addresses are hardly in use, other than for attacks.
func parseAddress(text string) (address netmail.Address, fault string) {
	if fault := lineFault(text); fault != "" {
		return address, fault
	}
	parsed, err := netmail.ParseAddress(text)
	if err != nil {
		return address, "is not an address"
	}
	local, domain, _ := strings.Cut(parsed.Address, "@")
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && !strings.ContainsRune(`"(),:;<>@[\]`, r) }
	switch odd := func(r rune) bool { return !plain(r) }; {
	case strings.ContainsFunc(domain, odd) || domain == "":
		return address, "has a domain that is not plain ASCII; write it in its xn-- form"
	case strings.ContainsFunc(local, odd):
		return address, "has characters before the @ that are not supported"
	case len(local) > 64 || len(domain) > 255:
		return address, "is too long"
	case lineFault(parsed.Name) != "":
		return address, "has a name that " + lineFault(parsed.Name)
	case len(parsed.Name) > longestName:
		return address, "has a name that is too long"
	}
	return *parsed, ""
}

// lineFault is what is wrong with a text that has to stay on one line of the
// head, or empty.
func lineFault(text string) string {
	for _, r := range text {
		if r < ' ' && r != '\t' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' {
			return "has a line break or another control character in it"
		}
	}
	if len(text) > longestLine {
		return "is too long"
	}
	return ""
}

// parseHeaders checks the headers that a script adds.
func parseHeaders(given map[string]string) ([]header, error) {
	if len(given) > mostHeaders {
		return nil, connector.BadArguments("", "there are %d headers, more than the %d allowed", len(given), mostHeaders)
	}
	var headers []header
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		switch fault := lineFault(value); {
		case !isHeaderName(name):
			return nil, connector.BadArguments("", "headers: %s cannot be the name of a header", pawl.Quote(name))
		case isOwnHeader(name):
			return nil, connector.BadArguments("Use the argument for it, if there is one.", "headers: %s is set by Pawl", name)
		case fault != "":
			return nil, connector.BadArguments("", "headers: the value of %s %s", name, fault)
		case slices.ContainsFunc(headers, func(h header) bool { return strings.EqualFold(h.name, name) }):
			return nil, connector.BadArguments("", "headers: %s is there twice", name)
		}
		headers = append(headers, header{name, value})
	}
	return headers, nil
}

func isHeaderName(name string) bool {
	isOdd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }
	return name != "" && len(name) <= 76 && !strings.ContainsFunc(name, isOdd)
}

// isOwnHeader reports whether a header is made out of something else, or says
// who sent the message.
func isOwnHeader(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{"content-", "resent-", "received", "dkim-", "arc-", "authentication-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"from", "sender", "to", "cc", "bcc", "reply-to", "subject", "date", "message-id", "mime-version", "return-path"}, name)
}
