package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// maxPartBytes is how much is sent at once: what a server takes, and some room.
const maxPartBytes = 8<<20 - 64<<10

// runFile enqueues the jobs of a file, part by part.
func (e *enqueuer) runFile(cmd *cobra.Command) error {
	for _, name := range []string{"payload", "message", "method", "header", "body", "in", "at", "lane", "key", "key-mode", "priority", "max-attempts", "wait"} {
		if cmd.Flags().Changed(name) {
			return usageError("Write it in the lines of the file.", "--file and --%s cannot go together", name)
		}
	}
	in := io.Reader(e.p.Stdin)
	if e.file != "-" {
		f, err := os.Open(e.p.path(e.file))
		if err != nil {
			return usageError("", "--file: %s", err)
		}
		defer f.Close() //nolint:errcheck // it was read
		in = f
	}
	c, err := e.flags.connect(e.p)
	if err != nil {
		return err
	}
	defer c.Close()
	lines := &jobLines{from: bufio.NewReaderSize(in, 64<<10)}
	var done []json.RawMessage
	for n := 1; ; n++ {
		part, err := lines.next()
		if err == nil && len(part) == 0 {
			return e.tellFile(done)
		}
		var more []json.RawMessage
		if err == nil {
			more, err = e.sendPart(cmd.Context(), c, part, n)
		}
		if err != nil {
			return afterParts(err, len(done))
		}
		done = append(done, more...)
	}
}

// sendPart enqueues a part of a file. The key of each part is its own.
func (e *enqueuer) sendPart(ctx context.Context, c *client.Client, part []jobLine, n int) ([]json.RawMessage, error) {
	body := struct {
		Jobs []json.RawMessage `json:"jobs"`
	}{}
	for _, l := range part {
		body.Jobs = append(body.Jobs, l.text)
	}
	key := e.once
	if key != "" && n > 1 {
		key += "-" + strconv.Itoa(n)
	}
	raw, err := c.Send(ctx, client.Request{Method: http.MethodPost, Path: client.JobsBulkPath, Header: onceHeader(key), Body: body})
	if err != nil {
		return nil, inLines(err, part)
	}
	var told struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &told); err != nil {
		return nil, fmt.Errorf("read jobs: %w", err)
	}
	return told.Items, nil
}

func (e *enqueuer) tellFile(done []json.RawMessage) error {
	if e.out.machine() {
		raw, err := json.Marshal(map[string]any{"items": append([]json.RawMessage{}, done...)})
		if err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		return writeMachine(e.p.Stdout, e.out.format, raw)
	}
	_, err := fmt.Fprintf(e.p.Stdout, "%s enqueued\n", plural(len(done), "job"))
	return err
}

// afterParts says what is there already when a part of a file is refused.
func afterParts(err error, done int) error {
	said, ok := errors.AsType[*pawl.Error](err)
	if !ok || done == 0 {
		return err
	}
	e := *said
	e.Msg = fmt.Sprintf("%s (%s of the lines before were enqueued)", strings.TrimSuffix(e.Msg, "."), plural(done, "job"))
	return &e
}

// inLines names the lines of a file where the server names places in a request.
func inLines(err error, part []jobLine) error {
	said, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		return err
	}
	e := *said
	e.Fields = append([]pawl.Field{}, said.Fields...)
	for i, f := range e.Fields {
		rest, is := strings.CutPrefix(f.Pointer, "/jobs/")
		place, below, _ := strings.Cut(rest, "/")
		if at, err := strconv.Atoi(place); is && err == nil && at >= 0 && at < len(part) {
			e.Fields[i].Pointer = "line " + strconv.Itoa(part[at].number)
			if below != "" {
				e.Fields[i].Pointer += ": /" + below
			}
		}
	}
	return &e
}

// jobLine is a line of a file with a job.
type jobLine struct {
	number int
	text   json.RawMessage
}

// jobLines reads a file of jobs.
type jobLines struct {
	from *bufio.Reader
	line int
	held *jobLine // read, and too much for the last part
}

// next reads as many lines as are sent at once; none is the end.
func (l *jobLines) next() (part []jobLine, err error) {
	size := 0
	for len(part) < client.MaxBulkJobs {
		one := l.held
		l.held = nil
		if one == nil {
			if one, err = l.read(); err != nil || one == nil {
				return part, err
			}
		}
		if len(part) > 0 && size+len(one.text) > maxPartBytes {
			l.held = one
			return part, nil
		}
		size += len(one.text) + 1
		part = append(part, *one)
	}
	return part, nil
}

// read reads the next line that is not empty; nil is the end.
func (l *jobLines) read() (*jobLine, error) {
	for {
		l.line++
		text, err := l.readLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, usageError("", "--file: line %d: %s", l.line, err)
		}
		if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 {
			if !json.Valid(trimmed) {
				return nil, usageError(`Write one JSON object in each line, such as {"task": "log", "payload": {"message": "hello"}}.`, "--file: line %d is not JSON", l.line)
			}
			return &jobLine{l.line, trimmed}, nil
		}
		if err != nil {
			return nil, nil //nolint:nilerr,nilnil // the end of the file
		}
	}
}

// readLine reads up to a line break, and not more than one request can have.
func (l *jobLines) readLine() (line []byte, err error) {
	for {
		piece, err := l.from.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > maxPartBytes:
			return nil, fmt.Errorf("has more than %d bytes", maxPartBytes)
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
