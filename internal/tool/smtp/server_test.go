package smtp

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// The steps of a dialogue, at which a server can fail.
const (
	stepGreeting = "greeting"
	stepHello    = "EHLO"
	stepTLS      = "STARTTLS"
	stepSecure   = "handshake"
	stepAgain    = "EHLO over TLS"
	stepAuth     = "AUTH"
	stepSender   = "MAIL"
	stepTarget   = "RCPT"
	stepData     = "DATA"
	stepContent  = "content"
	stepDot      = "dot"
	stepQuit     = "QUIT"
)

// fault is what a server does wrong at a step.
type fault struct {
	step string
	do   string // one of the deeds, or a reply that begins with its code
}

// The deeds.
const (
	cutBefore = "cut before it is done"
	cutAfter  = "cut after it is done, before the answer"
	hang      = "no answer"
	babble    = "an answer that is not SMTP"
	half      = "half of an answer"
)

// smtpServer is a small mail server that keeps what it accepted.
type smtpServer struct {
	listener net.Listener
	tls      *tls.Config
	implicit bool     // TLS from the first byte
	offers   []string // what EHLO answers, without STARTTLS
	fault    fault
	user     string // "name password" that AUTH takes
	atDot    func() // called when a message is complete, before it is answered

	mu       sync.Mutex
	accepted []received // guarded by mu
	commands []string   // guarded by mu
}

// received is a message as the server got it.
type received struct {
	from    string
	to      []string
	content string
}

// newServer starts a server on a local port.
func newServer(t *testing.T, change func(*smtpServer)) *smtpServer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certificate, _ := selfSigned(t)
	s := &smtpServer{
		listener: listener, tls: &tls.Config{Certificates: []tls.Certificate{certificate}},
		offers: []string{"SIZE 20000000", "8BITMIME", "AUTH LOGIN PLAIN"}, user: "robot geheim-123",
	}
	if change != nil {
		change(s)
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { (&visit{server: s, conn: conn}).serve() })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		open.Wait()
	})
	return s
}

func (s *smtpServer) messages() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

func (s *smtpServer) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.commands, "\n")
}

// visit is one connection to the server.
type visit struct {
	server *smtpServer
	conn   net.Conn
	reader *bufio.Reader
	mail   received
	secure bool
}

// serve speaks until somebody ends it.
func (v *visit) serve() {
	defer func() { _ = v.conn.Close() }()
	_ = v.conn.SetDeadline(time.Now().Add(time.Minute))
	v.reader = bufio.NewReader(v.conn)
	if v.server.implicit && !v.startTLS() {
		return
	}
	if !v.answer(stepGreeting, "220 hello") {
		return
	}
	for {
		line, err := v.reader.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\r\n")
		v.server.mu.Lock()
		v.server.commands = append(v.server.commands, line)
		v.server.mu.Unlock()
		if !v.command(line) {
			return
		}
	}
}

// command does what a line asks for. It reports whether the visit goes on.
func (v *visit) command(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	switch strings.ToUpper(verb) {
	case "EHLO":
		return v.hello()
	case "STARTTLS":
		return v.answer(stepTLS, "220 go") && v.startTLS()
	case "AUTH":
		return v.auth(rest)
	case "MAIL":
		v.mail = received{from: rest}
		return v.answer(stepSender, "250 ok")
	case "RCPT":
		v.mail.to = append(v.mail.to, rest)
		return v.answer(stepTarget, "250 ok")
	case "DATA":
		if !v.answer(stepData, "354 go on") {
			return false
		}
		if f := v.server.fault; f.step == stepData && f.do[0] >= '1' && f.do[0] <= '5' {
			return true // refused: no content follows
		}
		return v.data()
	case "QUIT":
		v.answer(stepQuit, "221 bye")
		return false
	}
	return v.answer("", "502 what")
}

func (v *visit) hello() bool {
	step, offers := stepHello, v.server.offers
	if v.secure && !v.server.implicit {
		step = stepAgain
	} else if !v.server.implicit {
		offers = append([]string{"STARTTLS"}, offers...)
	}
	lines := "250-server\r\n"
	for i, offer := range offers {
		mark := "-"
		if i == len(offers)-1 {
			mark = " "
		}
		lines += "250" + mark + offer + "\r\n"
	}
	return v.answer(step, strings.TrimSuffix(lines, "\r\n"))
}

func (v *visit) startTLS() bool {
	switch f := v.server.fault; {
	case f.step == stepSecure && f.do == hang:
		_, _ = io.Copy(io.Discard, v.conn)
		return false
	case f.step == stepSecure:
		return false
	}
	conn := tls.Server(v.conn, v.server.tls)
	if err := conn.Handshake(); err != nil {
		return false
	}
	v.conn, v.secure = conn, true
	v.reader = bufio.NewReader(conn)
	return true
}

func (v *visit) auth(rest string) bool {
	how, initial, _ := strings.Cut(rest, " ")
	var got string
	switch how {
	case "PLAIN":
		plain, _ := base64.StdEncoding.DecodeString(initial)
		got = strings.TrimPrefix(strings.ReplaceAll(string(plain), "\x00", " "), " ")
	case "LOGIN":
		for _, question := range []string{"VXNlcm5hbWU6", "UGFzc3dvcmQ6"} {
			_, _ = fmt.Fprintf(v.conn, "334 %s\r\n", question)
			line, _ := v.reader.ReadString('\n')
			word, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
			got = strings.TrimPrefix(got+" "+string(word), " ")
		}
	}
	if got != v.server.user {
		return v.answer(stepAuth, "535 5.7.8 bad credentials: "+got)
	}
	return v.answer(stepAuth, "235 welcome")
}

// data reads a message up to its dot.
func (v *visit) data() bool {
	if f := v.server.fault; f.step == stepContent {
		_, _ = io.CopyN(io.Discard, v.reader, 100)
		if f.do == hang {
			_, _ = io.Copy(io.Discard, v.conn)
		}
		return false
	}
	for {
		line, err := v.reader.ReadString('\n')
		if err != nil {
			return false
		}
		if line == ".\r\n" {
			return v.accept()
		}
		v.mail.content += strings.TrimPrefix(line, ".")
	}
}

// accept takes the message, unless the fault says otherwise.
func (v *visit) accept() bool {
	if v.server.atDot != nil {
		v.server.atDot()
	}
	if f := v.server.fault; f.step == stepDot && (f.do == cutBefore || f.do[0] == '4' || f.do[0] == '5') {
		return v.answer(stepDot, "")
	}
	v.server.mu.Lock()
	v.server.accepted = append(v.server.accepted, v.mail)
	v.server.mu.Unlock()
	return v.answer(stepDot, "250 queued as 42")
}

// answer replies to a step, unless there is a fault.
func (v *visit) answer(step, text string) bool {
	f := v.server.fault
	if f.step != step {
		_, err := fmt.Fprintf(v.conn, "%s\r\n", text)
		return err == nil
	}
	switch f.do {
	case cutBefore, cutAfter:
		return false
	case hang:
		_, _ = io.Copy(io.Discard, v.conn)
		return false
	case babble:
		_, _ = fmt.Fprint(v.conn, "HTTP/1.1 200 OK\r\n\r\n")
		return true
	case half:
		_, _ = fmt.Fprint(v.conn, "25")
		return false
	}
	_, err := fmt.Fprintf(v.conn, "%s\r\n", f.do)
	return err == nil
}

// certificates are made once.
var certificates sync.Map

// selfSigned is a certificate for 127.0.0.1 that only its own pool trusts.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	type pair struct {
		certificate tls.Certificate
		pool        *x509.CertPool
	}
	made, _ := certificates.LoadOrStore("one", sync.OnceValue(func() pair {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
		raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			panic(err)
		}
		leaf, err := x509.ParseCertificate(raw)
		if err != nil {
			panic(err)
		}
		pool := x509.NewCertPool()
		pool.AddCert(leaf)
		return pair{tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pool}
	}))
	p := made.(func() pair)()
	return p.certificate, p.pool
}
