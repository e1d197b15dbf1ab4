package script

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// kind is the type of a frame.
type kind byte

// Frames to a worker.
const (
	toCompile kind = 'K' // a source to compile: name, NUL, source
	toRun     kind = 'R' // a phase to run: runHeader, arguments
	toProgram kind = 'P' // the JavaScript the worker asked for
	toAnswer  kind = 'A' // the answer to call id
	toRefuse  kind = 'E' // the error of call id
	toAbort   kind = 'X' // drop phase id, whatever it is doing
)

// Frames from a worker.
const (
	fromHello    kind = 'H' // the worker is ready and confined: hello
	fromNeed     kind = 'N' // phase id needs its program
	fromCall     kind = 'C' // call id: op, NUL, place, NUL, arguments
	fromTell     kind = 'T' // the same without an answer
	fromLog      kind = 'L' // level, NUL, text
	fromDone     kind = 'D' // phase id ended: ending, newline, value
	fromFailed   kind = 'F' // phase id ended: ending
	fromDropped  kind = 'Y' // phase id was dropped
	fromCompiled kind = 'J' // the program of compilation id
)

// A frame is a kind, an id and a payload. On the wire: kind u8, id u32, length
// u32, little-endian, then the payload.
type frame struct {
	kind    kind
	id      uint32
	payload []byte
}

const headerSize = 9

// errProtocol is a frame that the other side must not send. From a worker it
// means that the worker can no longer be trusted to do anything.
var errProtocol = errors.New("unexpected frame")

// appendFrame appends f in wire form.
func appendFrame(b []byte, f frame) []byte {
	b = append(b, byte(f.kind))
	b = binary.LittleEndian.AppendUint32(b, f.id)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.payload)))
	return append(b, f.payload...)
}

// readFrame reads one frame. most says how long a payload of each kind may be,
// negative for a kind that is not expected; it is asked before anything is
// allocated. An error that leaves the stream between two frames is returned as
// it is, so that a deadline can be tried again; any other is errTorn.
func readFrame(r *bufio.Reader, most func(kind) int) (frame, error) {
	header, err := r.Peek(headerSize)
	if err != nil {
		return frame{}, err
	}
	f := frame{kind: kind(header[0]), id: binary.LittleEndian.Uint32(header[1:])}
	size := binary.LittleEndian.Uint32(header[5:])
	limit := most(f.kind)
	if limit < 0 {
		return frame{}, fmt.Errorf("%w: kind %q", errProtocol, f.kind)
	}
	if int64(size) > int64(limit) {
		return frame{}, fmt.Errorf("%w: kind %q with %d bytes, over %d", errProtocol, f.kind, size, limit)
	}
	if _, err := r.Discard(headerSize); err != nil {
		return frame{}, errTorn
	}
	f.payload = make([]byte, size)
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return frame{}, fmt.Errorf("%w: %w", errTorn, err)
	}
	return f, nil
}

// errTorn is a stream that ended inside a frame.
var errTorn = errors.New("torn frame")
