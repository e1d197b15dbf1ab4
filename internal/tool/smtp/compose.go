package smtp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime/quotedprintable"
	"slices"
	"strings"
	"time"
)

// message is a letter as it goes over the wire.
type message struct {
	id         string   // with its angle brackets
	sender     string   // for the envelope
	recipients []string // for the envelope
	content    []byte   // lines of ASCII that end with CR LF; dots are not doubled yet
}

// compose writes a letter down. The same letter with the same key at the same
// time is the same message.
func (s *Server) compose(l letter, key string, now time.Time) message {
	m := message{id: messageID(key, s.from.Address), sender: s.from.Address}
	for _, address := range slices.Concat(l.to, l.cc, l.bcc) {
		if !slices.Contains(m.recipients, address.Address) {
			m.recipients = append(m.recipients, address.Address)
		}
	}
	var out bytes.Buffer
	writeHeader(&out, "From", s.from.String())
	if len(l.to)+len(l.cc) == 0 {
		writeHeader(&out, "To", "undisclosed-recipients:;")
	}
	writeAddresses(&out, "To", l.to)
	writeAddresses(&out, "Cc", l.cc)
	if l.replyTo != nil {
		writeHeader(&out, "Reply-To", l.replyTo.String())
	}
	writeHeader(&out, "Subject", encodeWords(l.subject))
	writeHeader(&out, "Date", now.UTC().Format(time.RFC1123Z))
	writeHeader(&out, "Message-ID", m.id)
	for _, h := range l.headers {
		writeHeader(&out, h.name, encodeWords(h.value))
	}
	writeHeader(&out, "MIME-Version", "1.0")
	writeBody(&out, l, key)
	m.content = out.Bytes()
	return m
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
func writeBody(out *bytes.Buffer, l letter, key string) {
	if l.text == nil || l.html == nil {
		writePart(out, l)
		return
	}
	// It is not in the parts, because no encoded line begins with --=_.
	boundary := "=_" + digest("boundary of "+key)
	writeHeader(out, "Content-Type", `multipart/alternative; boundary="`+boundary+`"`)
	out.WriteString("\r\n")
	for _, part := range []letter{{text: l.text}, {html: l.html}} { // the best one last
		out.WriteString("--" + boundary + "\r\n")
		writePart(out, part)
		out.WriteString("\r\n")
	}
	out.WriteString("--" + boundary + "--\r\n")
}

// writePart writes one text with its own head, in quoted-printable: short
// lines of ASCII, whatever is in it.
func writePart(out *bytes.Buffer, l letter) {
	kind, text := "plain", l.text
	if text == nil {
		kind, text = "html", l.html
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
