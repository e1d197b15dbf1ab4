package client

import (
	"bufio"
	"io"
	"strings"
)

// StreamEvent is one event of the stream of a server. What Data is depends on
// the type: JobEvent, RunEvent, WorkflowEvent, SourceEvent or ScheduleEvent.
type StreamEvent struct {
	ID   string
	Type string // "message" when the server gave none
	Data []byte
}

const maxEventLine = 4 << 20 // bytes

// eventReader takes a stream of server-sent events apart, by the rules of the
// HTML standard.
type eventReader struct {
	lines *bufio.Scanner
	id    string // the last one seen
}

func newEventReader(r io.Reader) *eventReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxEventLine)
	return &eventReader{lines: lines}
}

// next returns the next event, or io.EOF at the end of the stream. What the
// end cuts off is dropped.
func (r *eventReader) next() (StreamEvent, error) {
	kind, data := "message", []string(nil)
	for r.lines.Scan() {
		line := r.lines.Text()
		if line == "" {
			if data == nil {
				kind = "message"
				continue
			}
			return StreamEvent{ID: r.id, Type: kind, Data: []byte(strings.Join(data, "\n"))}, nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			kind = value
		case "data":
			data = append(data, value)
		case "id":
			r.id = value
		}
	}
	if err := r.lines.Err(); err != nil {
		return StreamEvent{}, err
	}
	return StreamEvent{}, io.EOF
}
