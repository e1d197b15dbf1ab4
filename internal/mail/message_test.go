package mail

import (
	"context"
	"fmt"
	"mime"
	"net"
	netmail "net/mail"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSubjectsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Runs of spaces are one in a head.
		subject := strings.Join(strings.Fields(rapid.StringOfN(rapid.SampledFrom([]rune("ab =?_\"<>:;é漢👋\u202e")), 0, 200, -1).Draw(t, "subject")), " ")
		if LineFault(subject) != "" {
			return
		}
		m := Message{Key: "key", Date: time.Unix(0, 0), From: netmail.Address{Address: "robot@example.com"}, Subject: subject, Text: new("x")}.Encode()
		parsed, err := netmail.ReadMessage(strings.NewReader(string(m.Content)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
		if err != nil || got != subject {
			t.Fatalf("the subject %q arrives as %q, %v", subject, got, err)
		}
		for line := range strings.SplitSeq(string(m.Content), "\r\n") {
			if strings.ContainsAny(line, "\r\n") || len(line) > 998 {
				t.Fatalf("the line %q", line)
			}
		}
	})
}

func TestMessageIDsAreMadeOfKeys(t *testing.T) {
	for key, want := range map[string]string{
		"0199a-Z_9":             "<0199a-Z_9@example.com>",
		"a b>\r\nx":             "<" + digest("a b>\r\nx") + "@example.com>",
		strings.Repeat("k", 65): "<" + digest(strings.Repeat("k", 65)) + "@example.com>",
	} {
		if got := messageID(key, "robot@example.com"); got != want {
			t.Errorf("the key %q gives %s, want %s", key, got, want)
		}
	}
}

// Whatever an address is made of, what is accepted stays within its line of the
// headers and its command of the dialogue.
func TestAddressesStayOnTheirLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab@.<>\",;: \t\r\n\x00ü[]=?")), 0, 40, -1).Draw(t, "text")
		if rapid.Bool().Draw(t, "named") {
			text += " <ann@example.com>"
		}
		address, fault := ParseAddress(text)
		if fault != "" {
			return
		}
		if strings.ContainsAny(address.Address, "<>\r\n\t \x00") {
			t.Fatalf("%q is accepted as %q", text, address.Address)
		}
		m := Message{Key: "key", From: address, To: []netmail.Address{address}, Text: new("x")}.Encode()
		parsed, err := netmail.ReadMessage(strings.NewReader(string(m.Content)))
		if err != nil || len(parsed.Header) != 8 {
			t.Fatalf("%q gives the headers %v, %v", text, parsed, err)
		}
	})
}

// An address that is mapped into IPv6 is judged as what it stands for, and what
// is not an address at all is not spoken to in clear.
func TestWhereClearTextMayGo(t *testing.T) {
	s := &Server{Plain: netip.Addr.IsLoopback}
	for address, want := range map[net.Addr]bool{
		&net.TCPAddr{IP: net.ParseIP("127.0.0.1")}: true, &net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1")}: true, &net.TCPAddr{IP: net.ParseIP("::ffff:8.8.8.8")}: false,
		&net.UnixAddr{Name: "/run/mail"}: false,
	} {
		if got := s.mayBePlain(address); got != want {
			t.Errorf("%v may be spoken to in clear: %v", address, got)
		}
	}
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	s.TLS, s.Timeout = TLSNone, time.Minute
	s.Dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
	if _, err := s.Test(t.Context()); !strings.Contains(fmt.Sprint(err), "without TLS") {
		t.Errorf("a server that is not local is spoken to in clear: %v", err)
	}
}
