package fetch

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"
)

// spoolAfter is how many bytes of rows stay in memory, for each page.
const spoolAfter = 4 << 20

// The kinds of values in a spool.
const (
	tagNull byte = iota
	tagFalse
	tagTrue
	tagInteger // varint
	tagNumber  // 8 bytes
	tagText    // length, bytes
	tagJSON    // length, bytes
	tagTime    // varint seconds, uvarint nanoseconds
)

// spool keeps rows in the order of their arrival, each with its length in
// front. It fills buf and moves it to a file when it is full.
type spool struct {
	folder string // empty: that of the system
	buf    []byte
	file   *os.File
	named  bool  // the file still has its name
	filed  int64 // bytes in file
	start  int   // of the open row, in buf
	closed bool
}

// open begins a row; what is appended to buf belongs to it until keep or drop.
func (s *spool) open() {
	if s.buf == nil {
		s.buf = make([]byte, 0, 64<<10) // most pages fit, or nearly
	}
	s.start = len(s.buf)
	s.buf = append(s.buf, 0, 0, 0, 0)
}

// drop forgets the open row.
func (s *spool) drop() { s.buf = s.buf[:s.start] }

// keep ends the open row.
func (s *spool) keep() error {
	binary.LittleEndian.PutUint32(s.buf[s.start:], uint32(len(s.buf)-s.start-4))
	if len(s.buf) < spoolAfter {
		return nil
	}
	return s.flush()
}

func (s *spool) flush() error {
	if s.file == nil {
		if err := s.create(); err != nil {
			return fmt.Errorf("make a file for the rows of a page: %w", err)
		}
	}
	n, err := s.file.Write(s.buf)
	s.filed += int64(n)
	s.buf = s.buf[:0]
	if err != nil {
		return fmt.Errorf("write the rows of a page to a file: %w", err)
	}
	return nil
}

// create makes the file and takes its name away at once where the system
// allows that, so that not even a crash leaves it behind.
func (s *spool) create() error {
	if s.folder != "" {
		if err := os.MkdirAll(s.folder, 0o700); err != nil {
			return err
		}
	}
	file, err := os.CreateTemp(s.folder, "page-*.rows")
	if err != nil {
		return err
	}
	s.file = file
	s.named = os.Remove(file.Name()) != nil
	return nil
}

// close frees the memory and removes the file.
func (s *spool) close() error {
	s.buf, s.closed = nil, true
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	err := file.Close()
	if s.named {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

// each yields the rows, of width values each, until yield says no.
func (s *spool) each(width int, yield func(Row, error) bool) {
	if s.closed {
		yield(nil, errors.New("read the rows of a page: it is closed"))
		return
	}
	rows := rowReader{width: width}
	if s.file != nil {
		if !rows.file(io.NewSectionReader(s.file, 0, s.filed), yield) {
			return
		}
	}
	for b := s.buf; len(b) > 0; {
		end := 4 + int(binary.LittleEndian.Uint32(b))
		if !yield(rows.row(b[4:end]), nil) {
			return
		}
		b = b[end:]
	}
}

// rowReader turns the spooled form back into rows.
type rowReader struct {
	width int
	slab  []any // values of rows to come: one allocation serves many rows
}

// slabRows is how many rows share an allocation.
const slabRows = 64

// file yields the rows of a file and reports whether to go on.
func (r *rowReader) file(from io.Reader, yield func(Row, error) bool) bool {
	in := bufio.NewReaderSize(from, 256<<10)
	var head [4]byte
	var block []byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return true
			}
			yield(nil, fmt.Errorf("read the rows of a page: %w", err))
			return false
		}
		size := int(binary.LittleEndian.Uint32(head[:]))
		if cap(block) < size {
			block = make([]byte, size)
		}
		block = block[:size]
		if _, err := io.ReadFull(in, block); err != nil {
			yield(nil, fmt.Errorf("read the rows of a page: %w", err))
			return false
		}
		if !yield(r.row(block), nil) {
			return false
		}
	}
}

// row reads one row. Its texts share one allocation.
func (r *rowReader) row(b []byte) Row {
	if len(r.slab) < r.width {
		r.slab = make([]any, slabRows*r.width)
	}
	row := Row(r.slab[:r.width:r.width])
	r.slab = r.slab[r.width:]
	text := string(b)
	for i, at := 0, 0; i < r.width; i++ {
		row[i], at = readValue(b, text, at)
	}
	return row
}

// readValue reads the value at b[at:], of which text is a copy, and returns
// where the next one begins.
func readValue(b []byte, text string, at int) (any, int) {
	tag := b[at]
	at++
	switch tag {
	case tagFalse:
		return false, at
	case tagTrue:
		return true, at
	case tagInteger:
		v, n := binary.Varint(b[at:])
		return v, at + n
	case tagNumber:
		return math.Float64frombits(binary.LittleEndian.Uint64(b[at:])), at + 8
	case tagText:
		size, n := binary.Uvarint(b[at:])
		at += n
		return text[at : at+int(size)], at + int(size)
	case tagJSON:
		size, n := binary.Uvarint(b[at:])
		at += n
		return json.RawMessage(text[at : at+int(size)]), at + int(size)
	case tagTime:
		sec, n := binary.Varint(b[at:])
		at += n
		nsec, n := binary.Uvarint(b[at:])
		return time.Unix(sec, int64(nsec)).UTC(), at + n
	}
	return nil, at // tagNull
}

func appendText(b []byte, tag byte, text []byte) []byte {
	b = binary.AppendUvarint(append(b, tag), uint64(len(text)))
	return append(b, text...)
}

func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(append(b, tagTime), t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}
