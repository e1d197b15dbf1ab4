package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// largestMessage is in bytes. A server that sends more in one message is cut
// off; largestResult is refused more gently.
const largestMessage = 8 << 20

var errMessageTooLarge = errors.New("a message is too large")

// pipes carries messages to and from a process, one on each line. It is a
// connection of the SDK.
type pipes struct {
	process  *process
	lines    *bufio.Reader
	turn     chan struct{} // full while a message is being written
	log      *slog.Logger
	overflow atomic.Bool // the server sent a message that is too large
}

func newPipes(p *process, log *slog.Logger) *pipes {
	return &pipes{process: p, lines: bufio.NewReaderSize(p.out, 64<<10), turn: make(chan struct{}, 1), log: log}
}

// Connect is the transport of the SDK: the connection is there already.
func (p *pipes) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID is empty: pipes have one session only.
func (p *pipes) SessionID() string { return "" }

// Close ends the process. It must not wait: the SDK holds a lock meanwhile.
func (p *pipes) Close() error {
	p.process.stop()
	_ = p.process.out.Close() // wakes Read, and a process that waits to be read
	return nil
}

// Read returns the next message. Lines that are none are skipped: programs
// print greetings where they should not.
func (p *pipes) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		line, err := p.readLine()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		message, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			p.log.Debug("the MCP server sent something that is not a message", "bytes", len(line))
			continue
		}
		return message, nil
	}
}

func (p *pipes) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := p.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > largestMessage:
			p.overflow.Store(true)
			return nil, errMessageTooLarge
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(line) > 0 && errors.Is(err, io.EOF):
			return line, nil // a last line without an end
		case err != nil:
			return nil, err
		}
		return line, nil
	}
}

// Write sends a message. A process that does not read its input cannot hold
// the caller longer than the context allows. After a message that was sent in
// part, nothing more can be said, so the process is ended.
func (p *pipes) Write(ctx context.Context, message jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return fmt.Errorf("encode the message: %w", err)
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = p.process.in.SetWriteDeadline(time.Now()) // fails if the pipe is closed, which wakes the writer as well
		close(expired)
	})
	sent, err := p.process.in.Write(append(text, '\n'))
	if !stop() {
		<-expired
	}
	if request, ok := message.(*jsonrpc.Request); ok && request.Method == "tools/call" && sent > 0 {
		tripOf(ctx).mayHaveArrived() // who knows what a program makes of a part of a message
	}
	if err != nil {
		p.process.stop()
		return fmt.Errorf("write to the program: %w", err)
	}
	_ = p.process.in.SetWriteDeadline(time.Time{})
	return nil
}
