package repair

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
)

const (
	maxAnswer     = 4 << 20  // bytes, of the whole answer of a server
	maxComplaint  = 64 << 10 // bytes, of an answer that says no
	maxRetryAfter = time.Hour
)

// wire is the format in which a server of models is spoken to.
type wire interface {
	path() string
	headers(key string) map[string]string
	question(cfg Config, system, user string) any
	// answer reads the body of a 2xx answer.
	answer(body []byte) (completion, error)
}

// completion is what a model answered.
type completion struct {
	text    string
	in, out int // tokens; 0 when the server does not count
	// stopped says why the answer is not whole, and is empty when it is.
	stopped string
}

// model asks a language model.
type model struct {
	cfg    Config
	client *outbound.Client
	wire   wire
}

func newModel(cfg Config, client *outbound.Client, w wire) *model {
	cfg.URL = strings.TrimRight(cfg.URL, "/")
	return &model{cfg: cfg, client: client, wire: w}
}

func (m *model) Name() string { return m.cfg.Kind + " " + m.cfg.Model }

func (m *model) Propose(ctx context.Context, e Evidence) (Proposal, error) {
	user, err := evidencePrompt(e)
	if err != nil {
		return Proposal{}, err
	}
	limited, stop := context.WithTimeout(ctx, m.cfg.Timeout)
	defer stop()
	body, err := m.ask(limited, user)
	if ctx.Err() != nil {
		return Proposal{}, cancelled(context.Cause(ctx))
	}
	if err != nil {
		return Proposal{}, err
	}
	c, err := m.wire.answer(body)
	if err != nil {
		return Proposal{}, err
	}
	return m.proposal(e, c)
}

// ask sends the question and returns the body of a good answer.
func (m *model) ask(ctx context.Context, user string) ([]byte, error) {
	question, err := json.Marshal(m.wire.question(m.cfg, systemPrompt, user))
	if err != nil {
		return nil, internal("the question cannot be written as JSON")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.cfg.URL+m.wire.path(), bytes.NewReader(question))
	if err != nil {
		return nil, internal("the URL of the model's server is not valid")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	for name, value := range m.wire.headers(m.cfg.Key) {
		req.Header.Set(name, value)
	}
	resp, err := m.client.Do(ctx, req)
	if err != nil {
		return nil, callError(err, m.hide())
	}
	defer func() { _ = resp.Body.Close() }()
	if verdict := outbound.JudgeStatus(outbound.Read, resp.StatusCode); !verdict.OK() {
		return nil, m.refusal(resp, classOf(verdict.Class))
	}
	body, err := outbound.ReadBody(resp, maxAnswer)
	if err != nil {
		return nil, callError(err, m.hide())
	}
	return body, nil
}

// refusal explains an answer whose status says no.
func (m *model) refusal(resp *http.Response, class pawl.Class) *Error {
	e := &Error{Class: class, Msg: fmt.Sprintf("the model's server answered %d", resp.StatusCode)}
	if class == pawl.ClassAuth {
		e.Msg += ": the key is missing or not accepted"
		return e // servers quote parts of the key here
	}
	if wait, ok := outbound.RetryAfter(resp.Header, time.Now(), maxRetryAfter); ok {
		e.RetryAfter = wait
	}
	if said := complaint(resp); said != "" {
		e.Msg += ": " + m.hide().text(said)
	}
	return e
}

// complaint is the message inside a refusal. Both formats put it at the same
// place.
func complaint(resp *http.Response) string {
	body, err := outbound.ReadBody(resp, maxComplaint)
	if err != nil {
		return "" // the status says enough
	}
	var said struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &said) // what is no JSON says nothing
	return said.Error.Message
}

// proposal takes the script out of an answer.
func (m *model) proposal(e Evidence, c completion) (Proposal, error) {
	if c.stopped != "" {
		return Proposal{}, rejected("the answer is not whole: %s", c.stopped)
	}
	script, rest, err := codeBlock(c.text)
	if err != nil {
		return Proposal{}, err
	}
	if err := checkScript(e, script); err != nil {
		return Proposal{}, err
	}
	if m.hide().holdsKey(script) {
		return Proposal{}, rejected("the proposed script holds the key of the model's server")
	}
	return Proposal{Script: script, Explanation: m.hide().text(rest), CostNote: c.cost()}, nil
}

func (c completion) cost() string {
	if c.in == 0 && c.out == 0 {
		return ""
	}
	return fmt.Sprintf("%d tokens in, %d out", c.in, c.out)
}

func (m *model) hide() hider { return hider{key: m.cfg.Key} }
