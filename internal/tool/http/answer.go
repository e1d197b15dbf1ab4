package httptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/budget"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// largestRefusal is how much is read of an answer that is no result, in bytes.
const largestRefusal = 64 << 10

// answer is what came back. The head of it is complete; if the body is not,
// unread says why.
type answer struct {
	status int
	header http.Header
	body   []byte
	unread *outbound.Error
}

// send books the call, makes it, and notes what the answer tells about the
// limits of the service.
func (s *Service) send(ctx context.Context, r request) (answer, *connector.Error) {
	if fault := s.book(ctx, r); fault != nil {
		return answer{}, fault
	}
	a, failure := s.exchange(ctx, r)
	if failure != nil {
		return answer{}, s.failed(r, failure)
	}
	s.learn(ctx, r, a)
	return a, nil
}

// exchange sends the request and reads the answer, within the timeout of the
// connection.
func (s *Service) exchange(ctx context.Context, r request) (answer, *outbound.Error) {
	if s.client == nil { // the definition is only looked at
		return answer{}, &outbound.Error{Kind: outbound.KindInvalid, Reason: "nothing is called here"}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var body io.Reader = http.NoBody
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.verb, r.url.String(), body)
	if err != nil {
		return answer{}, &outbound.Error{Kind: outbound.KindInvalid, Reason: "the request cannot be made"}
	}
	req.Header = r.header
	resp, err := s.client.Do(ctx, req)
	if err != nil {
		return answer{}, outboundError(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end or given up
	limit := min(s.maxBody, largestAnswer)
	if !outbound.JudgeStatus(r.effect, resp.StatusCode).OK() {
		limit = min(limit, largestRefusal)
	}
	resp.Body = &roomyBody{ReadCloser: resp.Body, ctx: ctx}
	a := answer{status: resp.StatusCode, header: resp.Header}
	if a.body, err = outbound.ReadBody(resp, limit); err != nil {
		a.body, a.unread = nil, outboundError(err)
	}
	return a, nil
}

// What is held of an answer, in bytes. Most are small, and wait for no room.
const (
	largestAnswer = 8 << 20 // whatever maxBody says: a script is given no more
	smallAnswer   = 256 << 10
	heldByAnswer  = 32 << 20 // by a large one: as it came, as JSON, and on its way
)

// roomyBody makes sure that there is room for a body that is not small before
// more of it is read.
type roomyBody struct {
	io.ReadCloser
	ctx  context.Context
	read int
}

func (b *roomyBody) Read(p []byte) (int, error) {
	if b.read > smallAnswer {
		if err := budget.Reserve(b.ctx, heldByAnswer); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p)
	b.read += n
	return n, err
}

// outboundError is the error of the client; it has no others.
func outboundError(err error) *outbound.Error {
	if e, ok := errors.AsType[*outbound.Error](err); ok {
		return e
	}
	return &outbound.Error{Kind: outbound.KindUnreadable, MaybeSent: true, Reason: "the answer could not be read"}
}

type result struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// resultOf is what a script gets for an answer, by the table in the package
// doc.
func (s *Service) resultOf(r request, a answer) (json.RawMessage, error) {
	if !outbound.JudgeStatus(r.effect, a.status).OK() && !notModified(r, a.status) {
		return nil, s.refused(r, a)
	}
	if a.unread != nil {
		return nil, s.failed(r, a.unread)
	}
	body, fault := bodyOf(r, a)
	if fault != nil {
		fault.Msg = s.described(r) + ": " + fault.Msg
		return nil, fault
	}
	raw, err := json.Marshal(result{Status: a.status, Headers: shownHeaders(a.header), Body: body})
	if err != nil {
		return nil, &connector.Error{Class: pawl.ClassInternal, Code: "internal", Msg: "the result cannot be encoded", Err: err}
	}
	return raw, nil
}

// notModified reports whether an answer says that what the script has is still
// the same, and the script asked.
func notModified(r request, status int) bool {
	asked := r.header.Get("If-None-Match") != "" || r.header.Get("If-Modified-Since") != ""
	return status == http.StatusNotModified && r.effect == outbound.Read && asked
}

// bodyOf is the body of an answer: what the JSON in it says, or its text, or
// null. Text with bytes that are none cannot be read; but a mutation happened,
// so there the bytes are replaced.
func bodyOf(r request, a answer) (json.RawMessage, *connector.Error) {
	text := bytes.TrimPrefix(a.body, []byte("\ufeff"))
	if len(text) == 0 {
		return json.RawMessage("null"), nil
	}
	if isJSON(a.header.Get("Content-Type")) {
		return jsonBody(r, text)
	}
	if !utf8.Valid(text) && r.effect == outbound.Read {
		return nil, &connector.Error{Class: pawl.ClassLogic, Code: "not_text", NotApplied: true, Msg: "the answer is not UTF-8 text"}
	}
	return quoted(string(text)), nil
}

func jsonBody(r request, text []byte) (json.RawMessage, *connector.Error) {
	text = bytes.TrimSpace(bytes.ToValidUTF8(text, []byte("\uFFFD")))
	switch {
	case len(text) == 0:
		return json.RawMessage("null"), nil
	case json.Valid(text):
		return text, nil
	case r.effect == outbound.Read:
		return nil, &connector.Error{Class: pawl.ClassTransient, Code: "unreadable", NotApplied: true, Msg: "the answer says that it is JSON and is not"}
	}
	return nil, &connector.Error{Class: pawl.ClassIndeterminate, Code: "unreadable", Msg: "the answer says that it is JSON and is not"}
}

// quoted is a text in JSON.
func quoted(text string) json.RawMessage {
	raw, _ := json.Marshal(strings.ToValidUTF8(text, "\uFFFD")) // a string always can be
	return raw
}
