package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ReadBody reads the whole body of an answer, up to Config.MaxBody, and closes
// it.
func (c *Client) ReadBody(resp *http.Response) ([]byte, error) {
	return ReadBody(resp, c.cfg.MaxBody)
}

// ReadBody reads the whole body of an answer that has at most limit bytes after
// decompression, and closes it. A longer one is an Error of KindTooLarge; when
// the server announces the length, nothing of it is read.
func ReadBody(resp *http.Response, limit int64) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	if resp.ContentLength > limit && requestOf(resp).Method != http.MethodHead {
		return nil, tooLarge(resp, limit)
	}
	return io.ReadAll(LimitBody(resp, limit))
}

// LimitBody returns the body of an answer as a stream that ends in an Error of
// KindTooLarge when it has more than limit bytes after decompression. Closing
// the body remains the caller's duty.
func LimitBody(resp *http.Response, limit int64) io.Reader {
	return &limitedBody{resp: resp, limit: limit, left: limit}
}

type limitedBody struct {
	resp  *http.Response
	limit int64
	left  int64 // negative when the limit was passed
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, tooLarge(b.resp, b.limit)
	}
	// One byte past the limit tells a body that fits from one that does not.
	if int64(len(p))-1 > b.left {
		p = p[:b.left+1]
	}
	n, err := b.resp.Body.Read(p)
	if int64(n) > b.left {
		n, b.left = int(b.left), -1
		return n, tooLarge(b.resp, b.limit)
	}
	b.left -= int64(n)
	return n, err
}

func tooLarge(resp *http.Response, limit int64) *Error {
	return newError(requestOf(resp), Error{
		Kind:      KindTooLarge,
		MaybeSent: true,
		Status:    resp.StatusCode,
		Reason:    fmt.Sprintf("the answer has more than %d bytes", limit),
		Hint:      "ask for less at a time, for example with smaller pages",
	})
}

// requestOf returns the request of an answer; one that was made by hand may
// have none.
func requestOf(resp *http.Response) *http.Request {
	if resp.Request == nil {
		return &http.Request{}
	}
	return resp.Request
}

// answerBody is the body of every answer: its read errors are *Error, and
// closing it ends the context of the request.
type answerBody struct {
	io.ReadCloser
	ctx    context.Context // of the request; a body outlives the call that made it
	cancel context.CancelCauseFunc
	resp   *http.Response
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	e := Error{
		Kind: KindUnreadable, MaybeSent: true, Status: b.resp.StatusCode,
		Reason: "the body of the answer could not be read", Err: err,
	}
	if b.ctx.Err() != nil {
		e.Kind, e.Reason, e.Err = interrupted(b.ctx, true)
	}
	return n, newError(requestOf(b.resp), e)
}

func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
