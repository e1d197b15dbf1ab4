package mail

import (
	netmail "net/mail"
	"slices"
	"strings"
)

const (
	longestLine = 2000 // bytes of a subject or another header
	longestName = 200  // bytes of the name of a recipient
)

// ParseAddress reads one address, with or without a name. What would need
// quotes or more than ASCII in the dialogue with the server is refused: such
// addresses are hardly in use, other than for attacks.
func ParseAddress(text string) (address netmail.Address, fault string) {
	if fault := LineFault(text); fault != "" {
		return address, fault
	}
	parsed, err := netmail.ParseAddress(text)
	if err != nil {
		return address, "is not an address"
	}
	local, domain, _ := strings.Cut(parsed.Address, "@")
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),:;<>@[\]`, r) }
	switch {
	case strings.ContainsFunc(domain, odd) || domain == "":
		return address, "has a domain that is not plain ASCII; write it in its xn-- form"
	case strings.ContainsFunc(local, odd):
		return address, "has characters before the @ that are not supported"
	case len(local) > 64 || len(domain) > 255:
		return address, "is too long"
	case LineFault(parsed.Name) != "":
		return address, "has a name that " + LineFault(parsed.Name)
	case len(parsed.Name) > longestName:
		return address, "has a name that is too long"
	}
	return *parsed, ""
}

// LineFault is what is wrong with a text that has to stay on one line of the
// headers, or empty.
func LineFault(text string) string {
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

// IsHeaderName reports whether a header can have the name.
func IsHeaderName(name string) bool {
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }
	return name != "" && len(name) <= 76 && !strings.ContainsFunc(name, odd)
}

// IsReservedHeader reports whether a header is made out of something else, or
// says who sent the message.
func IsReservedHeader(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{"content-", "resent-", "received", "dkim-", "arc-", "authentication-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"from", "sender", "to", "cc", "bcc", "reply-to", "subject", "date", "message-id", "mime-version", "return-path"}, name)
}
