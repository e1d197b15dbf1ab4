package smtp

import (
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"
	"time"
)

// sentBy sends a message and returns how the server got it.
func sentBy(t *testing.T, args object) (received, *netmail.Message) {
	t.Helper()
	server := newServer(t, nil)
	send(t, connectTo(t, server, "tls: none"), "key", args)
	got := server.messages()
	if len(got) != 1 {
		t.Fatalf("%d messages were accepted", len(got))
	}
	for line := range strings.SplitSeq(got[0].content, "\r\n") {
		if len(line) > 998 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) {
			t.Errorf("the line %.100q is not fit for mail", line)
		}
	}
	parsed, err := netmail.ReadMessage(strings.NewReader(got[0].content))
	if err != nil {
		t.Fatal(err)
	}
	return got[0], parsed
}

// textIn decodes a part.
func textIn(t *testing.T, body io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(quotedprintable.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\r\n")
}

func TestMessagesHaveAnEnvelopeAndAHead(t *testing.T) {
	server := newServer(t, nil)
	s := connectTo(t, server, login)
	result := send(t, s, "0199-abc", object{
		"to": []string{"Ann Öst <ann@example.com>", "bob@example.com"}, "cc": `"Cem, the third" <cem@example.com>`, "bcc": []string{"dan@example.com", "bob@example.com"},
		"replyTo": "team@example.com", "subject": "Grüße an alle", "text": "Hello", "headers": object{"X-Order": "47 11", "References": "<a@b>"},
	})
	same(t, object{"messageId": "<0199-abc@example.com>", "response": "queued as 42", "accepted": []any{"ann@example.com", "bob@example.com", "cem@example.com", "dan@example.com"}}, result)
	got := server.messages()[0]
	if !strings.HasPrefix(got.from, "FROM:<robot@example.com> SIZE=") {
		t.Errorf("the sender is %s", got.from)
	}
	same(t, []string{"TO:<ann@example.com>", "TO:<bob@example.com>", "TO:<cem@example.com>", "TO:<dan@example.com>"}, got.to)
	parsed, err := netmail.ReadMessage(strings.NewReader(got.content))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"From": "Pawl|robot@example.com", "To": "Ann Öst|ann@example.com |bob@example.com", "Cc": "Cem, the third|cem@example.com", "Reply-To": "|team@example.com",
	} {
		list, err := parsed.Header.AddressList(name)
		var texts []string
		for _, address := range list {
			texts = append(texts, address.Name+"|"+address.Address)
		}
		if joined := strings.Join(texts, " "); err != nil || joined != want {
			t.Errorf("%s is %q, %v; want %q", name, joined, err, want)
		}
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if err != nil || subject != "Grüße an alle" {
		t.Errorf("the subject is %q, %v", subject, err)
	}
	same(t, []string{"<0199-abc@example.com>", "1.0", "47 11", "<a@b>", "", ""}, []string{
		parsed.Header.Get("Message-ID"), parsed.Header.Get("MIME-Version"), parsed.Header.Get("X-Order"), parsed.Header.Get("References"), parsed.Header.Get("Bcc"), parsed.Header.Get("Sender"),
	})
	if strings.Contains(got.content, "dan@example.com") {
		t.Error("a hidden recipient is shown")
	}
	if date, err := parsed.Header.Date(); err != nil || time.Since(date) > time.Hour {
		t.Errorf("the date is %v, %v", date, err)
	}
}

func TestTextsArriveAsTheyAre(t *testing.T) {
	for _, text := range []string{
		"", "Hello", "Grüße\n\n👋 = 100%\t \n", ".\n..\n.x", strings.Repeat("long ", 500), strings.Repeat("ü", 300),
		"a\r\n.\r\nMAIL FROM:<evil@example.com>\r\n", "a\n.\nQUIT\n", "a\r.\rQUIT\r", "a\n.\r\nDATA\r\n", "From the start",
		"--=_boundary\n--=_boundary--", "null \x00 bell \x07",
	} {
		want := strings.TrimSuffix(strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n", "\r", "\r\n").Replace(text), "\r\n")
		_, plain := sentBy(t, object{"to": "ann@example.com", "text": text})
		same(t, []string{"text/plain; charset=utf-8", want}, []string{plain.Header.Get("Content-Type"), textIn(t, plain.Body)})
		_, html := sentBy(t, object{"to": "ann@example.com", "html": text})
		same(t, []string{"text/html; charset=utf-8", want}, []string{html.Header.Get("Content-Type"), textIn(t, html.Body)})
	}
}

func TestTextAndHTMLAreAlternatives(t *testing.T) {
	_, parsed := sentBy(t, object{"bcc": "ann@example.com", "text": "Grüße", "html": "<b>Grüße</b>\n"})
	same(t, "undisclosed-recipients:;", parsed.Header.Get("To"))
	kind, params, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("the type is %s, %v", kind, err)
	}
	reader := multipart.NewReader(parsed.Body, params["boundary"])
	for _, want := range [][]string{{"text/plain; charset=utf-8", "Grüße"}, {"text/html; charset=utf-8", "<b>Grüße</b>"}} {
		part, err := reader.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		same(t, want, []string{part.Header.Get("Content-Type"), textIn(t, part)})
	}
	if _, err := reader.NextPart(); err != io.EOF {
		t.Errorf("another part: %v", err)
	}
}

func TestLongLinesOfTheHeadAreFolded(t *testing.T) {
	to := make([]string, mostRecipients)
	for i := range to {
		to[i] = "Somebody With A Name <somebody-" + strings.Repeat("x", i%40) + "@example.com>"
	}
	got, parsed := sentBy(t, object{"to": to, "text": "x", "subject": strings.Repeat("w", 1500), "headers": object{"List-Unsubscribe": "<https://example.com/" + strings.Repeat("u", 300) + ">"}})
	list, err := parsed.Header.AddressList("To")
	if err != nil || len(list) != mostRecipients {
		t.Errorf("%d recipients in the head, %v", len(list), err)
	}
	same(t, 40, len(got.to)) // each of them once
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if err != nil || subject != strings.Repeat("w", 1500) {
		t.Errorf("the subject is %.50q, %v", subject, err)
	}
	same(t, "<https://example.com/"+strings.Repeat("u", 300)+">", parsed.Header.Get("List-Unsubscribe"))
}
