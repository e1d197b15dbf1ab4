package script

import (
	"bytes"
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
const protocolVersion = 1

// runHeader begins a toRun frame; the arguments follow as a JSON array.
type runHeader struct {
	Program string `json:"program"` // Program.Version
	Handler string `json:"handler"` // empty: describe
	Scope   string `json:"scope,omitempty"`
	Now     int64  `json:"now"` // ms since 1970
	Seed    uint64 `json:"seed"`
	Limits  Limits `json:"limits"`

	ScheduledFor string `json:"scheduledFor,omitempty"` // as scripts see it; empty: it stands for no instant
	EndsAtCall   bool   `json:"endsAtCall,omitempty"`
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
