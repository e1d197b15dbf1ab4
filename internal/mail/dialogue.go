package mail

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

const (
	longestReply = 100         // lines
	goodbyeTime  = time.Second // for the last words
)

// dialogue is a connection to a server, in which commands get replies.
type dialogue struct {
	conn       net.Conn
	reader     *bufio.Reader // its size is that of the longest line
	secure     bool
	extensions map[string]string // what the server can do, by names in upper case

	ctx     context.Context // of the call; cuts the connection off when it ends
	release func() bool     // makes the connection independent of ctx; false if that came too late
}

// newDialogue starts a dialogue that is cut off when ctx ends.
func newDialogue(ctx context.Context, conn net.Conn) *dialogue {
	d := &dialogue{conn: conn, reader: bufio.NewReaderSize(conn, 4096), ctx: ctx}
	d.release = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return d
}

// reply is what a server says.
type reply struct {
	code int
	text string // of all lines, joined
}

func (r reply) ok() bool       { return r.code >= 200 && r.code < 300 }
func (r reply) String() string { return fmt.Sprintf("%d %s", r.code, r.text) }

// errReply is an answer that is not SMTP.
var errReply = errors.New("the answer is not SMTP")

// read reads one reply, which may have several lines.
func (d *dialogue) read() (reply, []string, error) {
	var r reply
	var lines []string
	for len(lines) < longestReply {
		raw, err := d.reader.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return reply{}, nil, errReply
		}
		if err != nil {
			return reply{}, nil, err
		}
		code, text, more, ok := parseLine(strings.TrimRight(string(raw), "\r\n"))
		if !ok || r.code != 0 && code != r.code {
			return reply{}, nil, errReply
		}
		r.code = code
		lines = append(lines, text)
		if !more {
			r.text = quote(strings.Join(lines, " "))
			return r, lines, nil
		}
	}
	return reply{}, nil, errReply
}

// parseLine splits 250-SIZE 1000. More says that another line follows.
func parseLine(line string) (code int, text string, more, ok bool) {
	if len(line) < 3 || line[0] < '1' || line[0] > '5' || line[1] < '0' || line[1] > '9' || line[2] < '0' || line[2] > '9' {
		return 0, "", false, false
	}
	code = int(line[0]-'0')*100 + int(line[1]-'0')*10 + int(line[2]-'0')
	if len(line) == 3 {
		return code, "", false, true
	}
	return code, line[4:], line[3] == '-', line[3] == '-' || line[3] == ' '
}

// command sends a line and reads the reply.
func (d *dialogue) command(format string, values ...any) (reply, error) {
	line := fmt.Sprintf(format, values...)
	if strings.ContainsAny(line, "\r\n") { // nothing gets here with a line break in it
		return reply{}, errors.New("a command has more than one line")
	}
	if _, err := d.conn.Write([]byte(line + "\r\n")); err != nil {
		return reply{}, err
	}
	r, _, err := d.read()
	return r, err
}

// hello introduces this side by its address, and learns what the server can
// do.
func (d *dialogue) hello() (reply, error) {
	if _, err := d.conn.Write([]byte("EHLO " + addressLiteral(d.conn.LocalAddr()) + "\r\n")); err != nil {
		return reply{}, err
	}
	r, lines, err := d.read()
	d.extensions = map[string]string{}
	for i, line := range lines {
		if name, params, _ := strings.Cut(line, " "); i > 0 {
			d.extensions[strings.ToUpper(name)] = params
		}
	}
	return r, err
}

// addressLiteral writes an address as SMTP wants it in place of a name.
func addressLiteral(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return "localhost"
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		return "[IPv6:" + ip.String() + "]"
	}
	return "[" + ip.String() + "]"
}

// write sends text in which dots at the beginning of lines are doubled.
func (d *dialogue) write(content []byte) error {
	out := bufio.NewWriterSize(d.conn, 32<<10)
	start := true
	for _, c := range content {
		if start && c == '.' {
			_ = out.WriteByte('.') // errors stay until Flush
		}
		_ = out.WriteByte(c)
		start = c == '\n'
	}
	return out.Flush()
}

// quit says goodbye, unless the call has to end, and closes the connection.
func (d *dialogue) quit() {
	d.release()
	if d.ctx.Err() != nil {
		_ = d.conn.Close()
		return
	}
	_ = d.conn.SetDeadline(time.Now().Add(goodbyeTime))
	_, _ = d.command("QUIT") // whatever it says
	_ = d.conn.Close()
}

// close closes the connection without a word.
func (d *dialogue) close() {
	d.release()
	_ = d.conn.Close()
}
