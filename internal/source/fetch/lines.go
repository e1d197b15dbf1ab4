package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// readLines reads an answer of one JSON value a line. A line that is none is
// rejected like any row that does not fit, but for the first one, which shows
// that the answer is something else, and for a last one that is cut off.
func readLines(in *bufio.Reader, asked *signals, rows *mapper) error {
	options := decodeOptions()
	var buf []byte
	for {
		line, err := readLine(in, &buf)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := addLine(line, last, options, asked, rows); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

func addLine(line []byte, last bool, options []jsontext.Options, asked *signals, rows *mapper) error {
	if jsontext.Value(line).IsValid(options...) {
		if asked.any() {
			asked.noteBelow(asked.tree.root, line)
		}
		return rows.addJSON(line)
	}
	switch {
	case last:
		return io.ErrUnexpectedEOF
	case rows.read == 0:
		return faultf(CodeNotJSON, "the first line of the answer is not JSON")
	}
	rows.begin(line)
	rows.refuse("the line is not JSON", line)
	return nil
}

// readLine returns the next line, which is valid until the next call. The last
// one comes with io.EOF. A line of more than maxRow bytes is errRow.
func readLine(in *bufio.Reader, buf *[]byte) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	*buf = (*buf)[:0]
	for errors.Is(err, bufio.ErrBufferFull) {
		*buf = append(*buf, line...)
		if len(*buf) > maxRow {
			return nil, errRow
		}
		line, err = in.ReadSlice('\n')
	}
	*buf = append(*buf, line...)
	return *buf, err
}
