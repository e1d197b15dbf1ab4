package mail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime/quotedprintable"
	netmail "net/mail"
	"slices"
	"strings"
	"time"
)

// Message is what somebody wants to send. Addresses come from [ParseAddress],
// names of headers pass [IsHeaderName].
type Message struct {
	Key         string // identifies it: the same key has the same Message-ID
	Date        time.Time
	From        netmail.Address
	To, Cc, Bcc []netmail.Address
	ReplyTo     *netmail.Address
	Subject     string
	Text, HTML  *string // at least one; with both, readers choose
	Headers     []Header
}

// Header is a header in addition to those that a message always has.
type Header struct{ Name, Value string }

// Encoded is a message as it goes over the wire.
type Encoded struct {
	ID         string   // the Message-ID, with its angle brackets
	Sender     string   // for the envelope
	Recipients []string // for the envelope; each once
	Content    []byte   // lines of ASCII that end with CR LF; dots are not doubled yet
}

// Encode writes a message down.
func (m Message) Encode() Encoded {
	e := Encoded{ID: messageID(m.Key, m.From.Address), Sender: m.From.Address}
	for _, address := range slices.Concat(m.To, m.Cc, m.Bcc) {
		if !slices.Contains(e.Recipients, address.Address) {
			e.Recipients = append(e.Recipients, address.Address)
		}
	}
	var out bytes.Buffer
	writeHeader(&out, "From", m.From.String())
	if len(m.To)+len(m.Cc) == 0 {
		writeHeader(&out, "To", "undisclosed-recipients:;")
	}
	writeAddresses(&out, "To", m.To)
	writeAddresses(&out, "Cc", m.Cc)
	if m.ReplyTo != nil {
		writeHeader(&out, "Reply-To", m.ReplyTo.String())
	}
	writeHeader(&out, "Subject", encodeWords(m.Subject))
	writeHeader(&out, "Date", m.Date.UTC().Format(time.RFC1123Z))
	writeHeader(&out, "Message-ID", e.ID)
	for _, h := range m.Headers {
		writeHeader(&out, h.Name, encodeWords(h.Value))
	}
	writeHeader(&out, "MIME-Version", "1.0")
	m.writeBody(&out)
	e.Content = out.Bytes()
	return e
}

// messageID is made of the key, so that the same call has the same id.
func messageID(key, sender string) string {
	_, domain, _ := strings.Cut(sender, "@")
	isOdd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	}
	if strings.ContainsFunc(key, isOdd) || len(key) > 64 {
		key = digest(key)
	}
	return "<" + key + "@" + domain + ">"
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// writeBody writes the text, the HTML, or both as alternatives.
func (m Message) writeBody(out *bytes.Buffer) {
	if m.Text == nil || m.HTML == nil {
		m.writePart(out)
		return
	}
	// It is not in the parts, because no encoded line begins with --=_.
	boundary := "=_" + digest("boundary of "+m.Key)
	writeHeader(out, "Content-Type", `multipart/alternative; boundary="`+boundary+`"`)
	out.WriteString("\r\n")
	for _, part := range []Message{{Text: m.Text}, {HTML: m.HTML}} { // the best one last
		out.WriteString("--" + boundary + "\r\n")
		part.writePart(out)
		out.WriteString("\r\n")
	}
	out.WriteString("--" + boundary + "--\r\n")
}

// writePart writes one text with its own head, in quoted-printable: short
// lines of ASCII, whatever is in it.
func (m Message) writePart(out *bytes.Buffer) {
	kind, text := "plain", m.Text
	if text == nil {
		kind, text = "html", m.HTML
	}
	writeHeader(out, "Content-Type", "text/"+kind+"; charset=utf-8")
	writeHeader(out, "Content-Transfer-Encoding", "quoted-printable")
	out.WriteString("\r\n")
	writer := quotedprintable.NewWriter(out)
	_, _ = writer.Write([]byte(wireLines(*text))) // into memory
	_ = writer.Close()
	if !bytes.HasSuffix(out.Bytes(), []byte("\r\n")) {
		out.WriteString("\r\n")
	}
}

// wireLines ends every line with CR LF, however it ended before.
func wireLines(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n", "\r", "\r\n").Replace(text)
}
