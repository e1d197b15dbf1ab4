package httptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// question is how to find out what became of a mutation.
type question struct {
	path  template
	found []string // where in the answer it is; nil if the answer itself is it

	absentAfter time.Duration // from when on what is not there did not happen
}

// ask is the URL that tells about a call.
func (s *Service) ask(q question, c connector.Call) (*url.URL, error) {
	path, err := q.path.expand(c.Key, c.Args)
	if err != nil {
		return nil, err
	}
	return s.target(path, nil)
}

// Reconcile asks the service by GET what became of a call; see the package
// doc.
func (s *Service) Reconcile(ctx context.Context, c connector.Call) (connector.Answer, error) {
	q, ok := s.reconcile[c.Method]
	if !ok {
		return connector.Answer{}, &connector.Error{Class: pawl.ClassInternal, Code: "no_reconcile", Msg: "the connection cannot report the outcome of a " + c.Method}
	}
	target, err := s.ask(q, c)
	if err != nil {
		return connector.Answer{}, s.withoutSecrets(saysNothing(err))
	}
	r := s.newQuestion(target)
	a, failure := s.send(ctx, r)
	if failure != nil {
		return connector.Answer{}, s.withoutSecrets(saysNothing(failure))
	}
	answer, err := s.meaning(q, r, a)
	if err != nil {
		return connector.Answer{}, s.withoutSecrets(saysNothing(err))
	}
	answer.Result = s.secrets.JSON(answer.Result)
	return answer, nil
}

// saysNothing takes off an error about the question what would be taken for a
// statement about the mutation.
func saysNothing(err error) error {
	if e, ok := errors.AsType[*connector.Error](err); ok {
		silent := *e
		silent.NotApplied = false
		return &silent
	}
	return err
}

// meaning is what the answer to a question says. An error means: ask later.
func (s *Service) meaning(q question, r request, a answer) (connector.Answer, error) {
	absent := connector.Answer{State: connector.Absent}
	switch {
	case a.status == http.StatusNotFound:
		return absent, nil
	case !outbound.JudgeStatus(outbound.Read, a.status).OK():
		return connector.Answer{}, s.refused(r, a)
	case a.unread != nil:
		return connector.Answer{}, s.failed(r, a.unread)
	case q.found == nil:
		body, fault := bodyOf(r, a)
		if fault != nil {
			return connector.Answer{}, fault
		}
		return connector.Answer{State: connector.Applied, Result: body}, nil
	case a.status == http.StatusNoContent:
		return absent, nil
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(bytes.ToValidUTF8(a.body, []byte("\uFFFD")), []byte("\ufeff")))
	if !json.Valid(text) { // a page of somebody in between, perhaps
		return connector.Answer{}, &connector.Error{Class: pawl.ClassTransient, Code: "unreadable", Msg: s.described(r) + ": the answer is not JSON"}
	}
	if value, ok := dig(text, q.found); ok {
		return connector.Answer{State: connector.Applied, Result: value}, nil
	}
	return absent, nil
}

// dig finds the value at a path of names and indexes. Null counts as absent.
func dig(raw json.RawMessage, path []string) (json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	if len(path) == 0 {
		return raw, len(raw) > 0 && string(raw) != "null"
	}
	if len(raw) == 0 {
		return nil, false
	}
	switch raw[0] {
	case '{':
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil {
			return nil, false
		}
		return dig(fields[path[0]], path[1:])
	case '[':
		var elements []json.RawMessage
		index, err := strconv.ParseUint(path[0], 10, 31)
		if err != nil || json.Unmarshal(raw, &elements) != nil || int(index) >= len(elements) {
			return nil, false
		}
		return dig(elements[index], path[1:])
	}
	return nil, false
}
