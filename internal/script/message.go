package script

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// hello is the first frame of a worker.
type hello struct {
	Protocol   int    `json:"protocol"`
	Engine     string `json:"engine"`
	Protection string `json:"protection"` // what confines it, for people
	Confined   bool   `json:"confined"`
}

// protocolVersion changes with the frames. Both sides are the same file, so a
// difference means that something else was started.
const protocolVersion = 2

// runHeader begins a toRun frame; the arguments follow as a JSON array. It is not JSON
// itself, which would take a worker as long to read as a small script takes to run.
type runHeader struct {
	Program string // Program.Version
	Handler string // empty: describe
	Scope   string
	Now     int64 // ms since 1970
	Seed    uint64
	Limits  Limits // without those that a worker does not hold

	ScheduledFor string // as scripts see it; empty: it stands for no instant
	EndsAtCall   bool
}

// cross writes the header, or reads it.
func (h *runHeader) cross(w *wire) {
	for _, text := range []*string{&h.Program, &h.Handler, &h.Scope, &h.ScheduledFor} {
		w.text(text)
	}
	number(w, &h.Now)
	number(w, &h.Seed)
	l := &h.Limits
	number(w, &l.CPU)
	number(w, &l.Heap)
	for _, n := range []*int{&l.Stack, &l.HostCalls, &l.InFlight, &l.Payload, &l.Output, &l.Log} {
		number(w, n)
	}
	ends := 0
	if h.EndsAtCall {
		ends = 1
	}
	number(w, &ends)
	h.EndsAtCall = ends == 1
}

// before is the payload of a toRun frame.
func (h runHeader) before(args []byte) []byte {
	w := &wire{bytes: make([]byte, 0, 256+len(args))}
	h.cross(w)
	return append(w.bytes, args...)
}

// readRunHeader is the inverse of before.
func readRunHeader(payload []byte) (h runHeader, args []byte, err error) {
	w := &wire{bytes: payload, reads: true}
	h.cross(w)
	if w.torn {
		return h, nil, errProtocol
	}
	return h, w.bytes, nil
}

// wire is what fields are written to, or read from the beginning of.
type wire struct {
	bytes []byte
	reads bool
	torn  bool // what was read ends too early
}

func number[T ~int | ~int64 | ~uint64](w *wire, n *T) {
	if !w.reads {
		w.bytes = binary.AppendVarint(w.bytes, int64(*n))
		return
	}
	read, size := binary.Varint(w.bytes)
	if size <= 0 {
		w.torn = true
		return
	}
	*n, w.bytes = T(read), w.bytes[size:]
}

func (w *wire) text(text *string) {
	size := len(*text)
	number(w, &size)
	switch {
	case !w.reads:
		w.bytes = append(w.bytes, *text...)
	case size < 0 || size > len(w.bytes):
		w.torn = true
	default:
		*text, w.bytes = string(w.bytes[:size]), w.bytes[size:]
	}
}

// ending is how a phase ended, as the worker tells it.
type ending struct {
	CPU      time.Duration `json:"cpu"`
	HasValue bool          `json:"hasValue"`
	Limit    Limit         `json:"limit,omitempty"` // the limit that ended it
	Thrown   *scriptError  `json:"thrown,omitempty"`
	Never    bool          `json:"never,omitempty"`  // it never settles
	Retire   bool          `json:"retire,omitempty"` // the worker should be replaced
}

// The most bytes of small frames.
const (
	mostHello     = 4 << 10
	mostEnding    = 256 << 10
	mostLine      = 32 << 10 // one log line; longer ones are cut
	mostText      = 4 << 10  // a name or a message of an exception
	mostStackText = 32 << 10
	mostSite      = 16 << 10 // op and place of a call
)

// joinHeader puts a JSON header and a body into one payload.
func joinHeader(header any, body []byte) ([]byte, error) {
	head, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	payload := make([]byte, 0, len(head)+1+len(body))
	payload = append(payload, head...)
	payload = append(payload, '\n')
	return append(payload, body...), nil
}

// splitHeader is the inverse of joinHeader.
func splitHeader(payload []byte, header any) (body []byte, err error) {
	head, body, _ := bytes.Cut(payload, []byte{'\n'})
	if err := json.Unmarshal(head, header); err != nil {
		return nil, fmt.Errorf("%w: %w", errProtocol, err)
	}
	return body, nil
}

// splitCall takes a fromCall or fromTell payload apart. Only the place in the
// middle may contain NUL: a script chooses its function names.
func splitCall(payload []byte) (op string, place string, args json.RawMessage, err error) {
	first, last := bytes.IndexByte(payload, 0), bytes.LastIndexByte(payload, 0)
	if first < 0 || first == last {
		return "", "", nil, fmt.Errorf("%w: a call without its parts", errProtocol)
	}
	args = payload[last+1:]
	if !json.Valid(args) {
		return "", "", nil, fmt.Errorf("%w: arguments that are not JSON", errProtocol)
	}
	return string(payload[:first]), string(payload[first+1 : last]), wellFormed(args), nil
}

// joinArgs makes a JSON array of arguments. A nil argument is one that is
// absent, which only the last one can be.
func joinArgs(args []json.RawMessage) ([]byte, error) {
	list := []byte{'['}
	for i, arg := range args {
		if arg == nil && i == len(args)-1 {
			break
		}
		if !json.Valid(arg) {
			return nil, fmt.Errorf("argument %d is not JSON", i)
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, arg...)
	}
	return append(list, ']'), nil
}
