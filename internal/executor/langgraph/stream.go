package langgraph

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

const (
	// quietLimit is how long a stream may be silent before the run is asked
	// about; a server that is gone does not always say so.
	quietLimit = time.Minute
	// largestEvent is in bytes.
	largestEvent = 16 << 20
)

// event is one event of a stream.
type event struct {
	name, id string
	data     []byte
}

// stream tells the events of the run from where it left off. That a stream
// ends or breaks says nothing; an error is one of emit.
func (f *following) stream(ctx context.Context) (events int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := f.request(ctx, http.MethodGet, f.path()+"/stream", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", f.lastEvent)
	silence := time.AfterFunc(quietLimit, cancel)
	defer silence.Stop()
	resp, err := f.client.Do(ctx, req)
	if err != nil {
		return 0, nil // the run is asked about next
	}
	defer func() { _ = resp.Body.Close() }() // given up, or at its end
	if resp.StatusCode != http.StatusOK {
		return 0, nil
	}
	err = readEvents(resp.Body, func(e event) error {
		silence.Reset(quietLimit)
		events++
		if e.id != "" {
			f.lastEvent = e.id
		}
		return f.handle(e)
	})
	return events, err
}

// readEvents reads a stream of server-sent events to its end. An event counts
// when the empty line after it was seen. The error is that of see.
func readEvents(stream io.Reader, see func(event) error) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, largestEvent)
	var e event
	for lines.Scan() { // a line ends in \n or \r\n
		line := lines.Text()
		if line == "" {
			if e.data != nil || e.name != "" {
				if err := see(e); err != nil {
					return err
				}
			}
			e = event{}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			if e.data = append(e.data, value...); e.data == nil {
				e.data = []byte{}
			}
		}
		if len(e.data) > largestEvent {
			return nil // the run is asked about next
		}
	}
	return nil
}

// tell passes on what an event says.
func (f *following) handle(e event) error {
	name, _, _ := strings.Cut(e.name, "|") // of a graph within a graph
	switch name {
	case "custom":
		return f.emit(runner.Progress(compact(e.data)))
	case "error":
		if said := failureText(e.data); said != "" {
			f.failure = said
		}
	case "updates":
		var nodes map[string]json.RawMessage
		if json.Unmarshal(e.data, &nodes) == nil {
			return f.emitNodes(nodes)
		}
	}
	return nil
}

// tellNodes tells which nodes came to their end, and what they cost. Names
// that begin with __ are the server's own.
func (f *following) emitNodes(nodes map[string]json.RawMessage) error {
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		if strings.HasPrefix(node, "__") {
			continue
		}
		if err := f.emit(runner.Progress("node " + node)); err != nil {
			return err
		}
		if err := f.emitUsage(nodes[node], false); err != nil {
			return err
		}
	}
	return nil
}

func compact(raw []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}

// message is what a message of a state says about its cost.
type message struct {
	ID    string `json:"id"`
	Usage *struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Detail struct {
			Cached int64 `json:"cache_read"`
		} `json:"input_token_details"`
	} `json:"usage_metadata"`
	Response struct {
		ModelName string `json:"model_name"`
		Model     string `json:"model"`
	} `json:"response_metadata"`
}

// tellUsage tells the usage of the messages among the values, each once. One
// without an id is known by its place, which it has at the end only.
func (f *following) emitUsage(values json.RawMessage, atEnd bool) error {
	var state struct {
		Messages json.RawMessage `json:"messages"`
	}
	_ = json.Unmarshal(values, &state) // other states have no messages
	var list []json.RawMessage
	if json.Unmarshal(state.Messages, &list) != nil {
		list = []json.RawMessage{state.Messages}
	}
	for i, raw := range list {
		var m message
		if json.Unmarshal(raw, &m) != nil || m.Usage == nil {
			continue
		}
		if m.ID == "" && atEnd {
			m.ID = fmt.Sprintf("message-%d", i+1)
		}
		if m.ID == "" || f.billed[m.ID] {
			continue
		}
		f.billed[m.ID] = true
		usage := &runner.Usage{Unit: m.ID, Model: m.Response.ModelName, InputTokens: max(m.Usage.Input, 0), CachedTokens: max(m.Usage.Detail.Cached, 0), OutputTokens: max(m.Usage.Output, 0)}
		if usage.Model == "" {
			usage.Model = m.Response.Model
		}
		if err := f.emit(runner.Event{Kind: runner.KindUsage, Usage: usage}); err != nil {
			return err
		}
	}
	return nil
}
