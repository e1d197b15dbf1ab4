package smtp

import (
	"context"
	"encoding/json"
	"errors"
	netmail "net/mail"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/mail"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const methodSend = "send"

// Server is the connection to one mail server.
type Server struct {
	name    string // of the connection, for messages
	server  mail.Server
	from    netmail.Address
	secrets redact.Redactor
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
	m, err := parse(c.Args)
	if err != nil {
		return nil, err
	}
	m.Key, m.Date, m.From = c.Key, time.Now(), s.from
	encoded := m.Encode()
	if n := len(encoded.Content); n > largestMessage {
		return nil, connector.BadArguments("Send a link instead.", "the message has %d bytes, more than the %d allowed", n, largestMessage)
	}
	response, err := s.server.Send(ctx, encoded)
	if err != nil {
		return nil, s.fault(err)
	}
	answer, err := json.Marshal(result{MessageID: encoded.ID, Accepted: encoded.Recipients, Response: s.secrets.Text(response)})
	if err != nil { // it was sent all the same
		return nil, &connector.Error{Class: pawl.ClassInternal, Code: "internal", Msg: "the result cannot be encoded"}
	}
	return answer, nil
}

// Reconcile has no answer: a mail server cannot be asked.
func (s *Server) Reconcile(context.Context, connector.Call) (connector.Answer, error) {
	return connector.Answer{}, &connector.Error{Class: pawl.ClassInternal, Code: "no_reconcile", Msg: "a mail server cannot report the outcome of a message"}
}

// Test connects and logs in, and sends nothing.
func (s *Server) Test(ctx context.Context) (string, error) {
	secure, err := s.server.Test(ctx)
	if err != nil {
		return "", s.fault(err)
	}
	saw := "the server answered in clear"
	if secure {
		saw = "the server answered over TLS"
	}
	if s.server.Username != "" {
		saw += " and let " + pawl.Quote(s.server.Username) + " in"
	}
	return saw, nil
}

// fault is the last step of every error: it names the connection and holds no
// secret.
func (s *Server) fault(err error) *connector.Error {
	fault := connector.Error{Class: pawl.ClassInternal, Code: "internal", Msg: "the call did not work"}
	if e, ok := errors.AsType[*connector.Error](err); ok { // of the dialer
		fault = *e
	} else if e, ok := errors.AsType[*mail.Error](err); ok {
		fault = connector.Error{
			Class: e.Class, Code: e.Code, Msg: e.Msg, Hint: e.Hint, NotApplied: e.Class != pawl.ClassIndeterminate, NotSent: e.Interrupted,
		}
	}
	fault.Msg, fault.Hint = s.secrets.Text(s.service()+": "+fault.Msg), s.secrets.Text(fault.Hint)
	fault.Err = nil // causes quote what the server sent
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			fault.Err = cause
		}
	}
	return &fault
}

// service names the connection and where it leads.
func (s *Server) service() string {
	if s.name == "" {
		return s.server.Address()
	}
	return s.name + " (" + s.server.Address() + ")"
}
