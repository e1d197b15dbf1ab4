package notify

import (
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/pgtest"
)

// mailTo is how mails reach a post office.
func mailTo(o *postOffice, to ...string) *Mail {
	return &Mail{Host: o.host, Port: o.port, From: "Pawl <pawl@example.com>", To: to}
}

// readMail takes a mail apart as a mail program would.
func readMail(t *testing.T, text string) (head mail.Header, body string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatalf("no mail: %v\n%s", err, text)
	}
	b, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	return m.Header, string(b)
}

// a mail says in plain words what is the matter, and carries the id of
// the notice.
func TestMailSaysWhatIsTheMatter(t *testing.T) {
	pgtest.Both(t, func(t *testing.T, url string) {
		office := (&postOffice{}).open(t)
		r := newRig(t, openDB(t, url), Config{Mail: mailTo(office, "ops@example.com"), BaseURL: "https://pawl.example.com"})
		notice := sickLane(lane.NoticeAttention, "Verbinde das Konto »Läden« neu.")
		notice.Name = "prices-ö"
		notice.At = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
		r.tell(notice)
		p := office.wait(t)
		head, body := readMail(t, p.Text)
		subject, err := new(mime.WordDecoder).DecodeHeader(head.Get("Subject"))
		if err != nil {
			t.Fatal(err)
		}
		if p.From != "pawl@example.com" || p.To != "ops@example.com" || subject != "[Pawl] Needs attention: workflow prices-ö" ||
			head.Get("Date") != "Sun, 01 Mar 2026 08:00:00 +0000" || head.Get("Auto-Submitted") != "auto-generated" {
			t.Errorf("from %s to %s: %q\n%v", p.From, p.To, subject, head)
		}
		if id := head.Get("Message-ID"); len(id) != len("<>")+36+len("@example.com") || !strings.HasSuffix(id, "@example.com>") {
			t.Errorf("Message-ID %s", id)
		}
		want := "Verbinde das Konto »Läden« neu.\r\n\r\nworkflow: prices-ö\r\nissue:    sign_in\r\nrun:      run-7\r\n" +
			"at:       2026-03-01T08:00:00.000Z\r\nsee:      https://pawl.example.com/workflows/prices\r\n"
		if body != want {
			t.Errorf("the mail says\n%s\nwant\n%s", body, want)
		}
		r.drained()
	})
}

// An address that is refused for now is tried again, alone; the others get
// their one copy of the same mail.
func TestRefusedAddressIsTriedAgainAlone(t *testing.T) {
	office := (&postOffice{refuse: map[string]int{"late@example.com": 2}}).open(t)
	r := newRig(t, openDB(t, sqliteURL(t)), Config{Mail: mailTo(office, "ops@example.com", "Late <late@example.com>")})
	r.tell(sickLane(lane.NoticeRecovered, "It works again."))
	first, second := office.wait(t), office.wait(t)
	if first.To != "ops@example.com" || second.To != "late@example.com" {
		t.Errorf("mails to %s and %s", first.To, second.To)
	}
	if first.Text != second.Text || !strings.Contains(first.Text, "ops@example.com") || !strings.Contains(first.Text, "late@example.com") {
		t.Errorf("the copies differ, or do not name all:\n%s\n%s", first.Text, second.Text)
	}
	r.drained()
	if len(office.arrived) > 0 {
		t.Error("somebody got a second copy")
	}
}

func TestMailGoesThroughTLSAndSignsIn(t *testing.T) {
	cert, pool := certificate(t)
	signIn := base64.StdEncoding.EncodeToString([]byte("\x00user\x00pass"))
	for way, implicit := range map[string]bool{TLSStart: false, TLSImplicit: true} {
		office := (&postOffice{cert: cert, implicit: implicit, signIn: signIn}).open(t)
		m := mailTo(office, "ops@example.com")
		m.TLS, m.RootCAs, m.Username, m.Password = way, pool, "user", "pass"
		r := newRig(t, openDB(t, sqliteURL(t)), Config{Mail: m})
		r.tell(sickLane(lane.NoticeReminder, "Reconnect the account."))
		if p := office.wait(t); !p.Secure || !strings.Contains(p.Text, "Still needs attention") {
			t.Errorf("%s: %+v", way, p)
		}
		r.drained()
	}
}

// Whatever is wrong with the way to a mail server, nothing is said on it.
func TestMailNeedsAWayThatIsSafe(t *testing.T) {
	cert, pool := certificate(t)
	for name, c := range map[string]struct {
		office *postOffice
		change func(*Mail)
		want   string
	}{
		"no STARTTLS":       {&postOffice{}, func(m *Mail) { m.TLS, m.RootCAs = TLSStart, pool }, "does not offer STARTTLS"},
		"not trusted":       {&postOffice{cert: cert}, func(m *Mail) { m.TLS = TLSStart }, "no secure connection"},
		"not trusted, TLS":  {&postOffice{cert: cert, implicit: true}, func(m *Mail) { m.TLS = TLSImplicit }, "no secure connection"},
		"another password":  {&postOffice{signIn: "eA=="}, func(m *Mail) { m.Username, m.Password = "user", "s3cret" }, `does not let "user" in: 535`},
		"no word":           {&postOffice{mute: true}, func(*Mail) {}, "the server was too slow"},
		"no word, over TLS": {&postOffice{mute: true}, func(m *Mail) { m.TLS = TLSImplicit }, "the server was too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			c.office.open(t)
			m := mailTo(c.office, "ops@example.com")
			c.change(m)
			r := newRig(t, openDB(t, sqliteURL(t)), Config{Mail: m}, func(n *Notifier) {
				n.gaps = []time.Duration{time.Hour}
				n.patience = time.Minute
				if c.office.mute {
					n.patience = time.Second
				}
			})
			r.tell(sickLane(lane.NoticeAttention, "Reconnect the account."))
			eventually(t, "the failure is written", func() bool { return r.rows()[0].LastErr != "" })
			if msg := r.rows()[0].LastErr; !strings.Contains(msg, c.want) || strings.Contains(msg, "s3cret") {
				t.Errorf("got %q, want %q", msg, c.want)
			}
			if len(c.office.arrived) > 0 {
				t.Error("a mail came through")
			}
		})
	}
}

func TestPortsFollowTheWay(t *testing.T) {
	for _, c := range []struct{ host, way, want string }{
		{"smtp.example.com", "", "smtp.example.com:587"},
		{"smtp.example.com", TLSImplicit, "smtp.example.com:465"},
		{"localhost", "", "localhost:25"},
		{"::1", "", "[::1]:25"},
		{"localhost", TLSStart, "localhost:587"},
	} {
		s, err := newServer(Mail{Host: c.host, TLS: c.way}, nil)
		if err != nil || s.Address() != c.want {
			t.Errorf("%s %s: %s %v, want %s", c.host, c.way, s.Address(), err, c.want)
		}
	}
}
