package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/source/spec"
)

// body is the body of an answer, counted and limited.
type body struct {
	io.Reader
	read int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	return n, err
}

// decode reads the body of an answer to the end and returns its size.
func decode(a *answer, ask Ask, asked *signals, rows *mapper) (int64, error) {
	d := ask.Definition
	if a.resp.StatusCode == http.StatusNoContent {
		return 0, nil
	}
	if a.resp.ContentLength > ask.maxBytes() {
		e := faultf(CodeTooLarge, "%s: the answer has %d bytes, and the limit is %d", a.req.URL.Host, a.resp.ContentLength, ask.maxBytes())
		e.Hint = "ask for smaller pages, or raise response.maxBytes"
		return 0, e
	}
	counted := &body{Reader: outbound.LimitBody(a.resp, ask.maxBytes())}
	in := bufio.NewReaderSize(counted, 64<<10)
	if err := checkStart(a, in, d.Response.Format); err != nil {
		return counted.read, err
	}
	var err error
	switch d.Response.Format {
	case spec.CSV:
		err = readTable(in, rows, d)
	case spec.NDJSON:
		err = readLines(in, asked, rows)
	default:
		err = readDocument(in, asked, rows)
	}
	if err != nil {
		return counted.read, explainDecode(a, err)
	}
	return counted.read, nil
}

// checkStart passes over a byte order mark and refuses what the first bytes
// show to be something else than the format.
func checkStart(a *answer, in *bufio.Reader, format spec.Format) error {
	if mark, _ := in.Peek(3); string(mark) == "\xEF\xBB\xBF" {
		_, _ = in.Discard(3)
	}
	start, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) && len(start) == 0 {
		return explainDecode(a, err)
	}
	text := bytes.TrimLeft(start, " \t\r\n")
	switch {
	case len(text) == 0 && len(start) == 512:
		return nil // all of it is space; the decoder finds out
	case len(text) == 0 && format == spec.NDJSON:
		return nil
	case len(text) == 0:
		return notFormat(a, format, "the answer is empty")
	case format == spec.CSV && text[0] != '<':
		return nil
	case format != spec.CSV && bytes.IndexByte([]byte(`{["-0123456789tfn`), text[0]) >= 0:
		return nil
	}
	return notFormat(a, format, "the answer begins with: "+excerpt(a.req, text, 80))
}

func notFormat(a *answer, format spec.Format, what string) *Error {
	code, name := CodeNotJSON, "JSON"
	if format == spec.CSV {
		code, name = CodeNotCSV, "CSV"
	}
	return faultf(code, "%s answered %d with something that is not %s: %s", a.req.URL.Host, a.resp.StatusCode, name, what)
}

// explainDecode turns an error of reading or decoding into an Error.
func explainDecode(a *answer, err error) *Error {
	host := a.req.URL.Host
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Class != pawl.ClassInternal {
			e.Msg = host + ": " + e.Msg
		}
		return e
	}
	if _, ok := errors.AsType[*outbound.Error](err); ok {
		return fromCall(a.req, err)
	}
	if errors.Is(err, errRow) {
		return faultf(CodeTooLarge, "%s: %s", host, errRow)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{Class: pawl.ClassTransient, Code: CodeTruncated, Msg: host + ": the answer ends too early", Err: err}
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e := faultf(CodeNotJSON, "%s: the answer is not valid JSON at byte %d", host, syntax.ByteOffset)
		e.Err = err
		return e
	}
	return ours("decode an answer", err)
}
