package smtp

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	netmail "net/mail"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const methodSend = "send"

// The ways to secure a connection.
const (
	tlsStartTLS = "starttls" // begins in clear and has to change to TLS
	tlsImplicit = "implicit" // is TLS from the first byte
	tlsNone     = "none"     // in clear; for addresses that are not public
)

// Server is the connection to one mail server.
type Server struct {
	env      connector.Env
	name     string // of the connection, for messages
	host     string
	port     int
	tls      string
	username string // empty: no login
	password string
	from     netmail.Address
	timeout  time.Duration
	secrets  redact.Redactor

	roots *x509.CertPool // nil: those of the system; tests have their own
}

// Methods lists send.
func (s *Server) Methods() []connector.Method {
	return []connector.Method{{Name: methodSend, Mutation: true}}
}

// result is what send answers.
type result struct {
	MessageID string   `json:"messageId"`
	Accepted  []string `json:"accepted"`
	Response  string   `json:"response"` // of the server, for its log
}

// Call sends a message. Its errors are *connector.Error.
func (s *Server) Call(ctx context.Context, c connector.Call) (json.RawMessage, error) {
	if c.Method != methodSend {
		return nil, &connector.Error{
			Class: pawl.ClassLogic, Code: "unknown_method", NotApplied: true,
			Msg: "there is no method " + pawl.Quote(c.Method), Hint: "The method is send.",
		}
	}
	if c.Key == "" {
		return nil, &connector.Error{Class: pawl.ClassInternal, Code: "no_key", NotApplied: true, Msg: "a mutation needs an idempotency key"}
	}
	asked, err := parse(c.Args)
	if err != nil {
		return nil, err
	}
	m := s.compose(asked, c.Key, time.Now())
	if len(m.content) > largestMessage {
		return nil, connector.BadArguments("Send a link instead.", "the message has %d bytes, more than the %d allowed", len(m.content), largestMessage)
	}
	response, err := s.deliver(ctx, m)
	if err != nil {
		return nil, s.tell(err)
	}
	answer, err := json.Marshal(result{MessageID: m.id, Accepted: m.recipients, Response: s.secrets.Text(response)})
	if err != nil { // it was sent all the same
		return nil, &connector.Error{Class: pawl.ClassInternal, Code: "internal", Msg: "the result cannot be encoded"}
	}
	return answer, nil
}

// Reconcile has no answer: a mail server cannot be asked.
func (s *Server) Reconcile(context.Context, connector.Call) (connector.Answer, error) {
	return connector.Answer{}, &connector.Error{Class: pawl.ClassInternal, Code: "no_reconcile", Msg: "a mail server cannot be asked what became of a message"}
}

// Test connects and logs in, and sends nothing.
func (s *Server) Test(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	d, err := s.connect(ctx)
	if err != nil {
		return "", s.tell(err)
	}
	defer d.quit()
	saw := "the server answered in clear"
	if d.secure {
		saw = "the server answered over TLS"
	}
	if s.username != "" {
		saw += " and let " + pawl.Quote(s.username) + " in"
	}
	return saw, nil
}

// tell is the last step of every error: it names the connection and holds no
// secret.
func (s *Server) tell(err error) *connector.Error {
	e, ok := errors.AsType[*connector.Error](err)
	if !ok {
		return &connector.Error{Class: pawl.ClassInternal, Code: "internal", Msg: s.service() + ": the call did not work"}
	}
	told := *e
	told.Msg, told.Hint = s.secrets.Text(s.service()+": "+e.Msg), s.secrets.Text(e.Hint)
	told.Err = nil // causes quote what the server sent
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(e.Err, cause) {
			told.Err = cause
		}
	}
	return &told
}

// service names the connection and where it leads.
func (s *Server) service() string {
	if s.name == "" {
		return s.address()
	}
	return s.name + " (" + s.address() + ")"
}
