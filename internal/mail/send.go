package mail

import (
	"context"
	"strconv"
	"time"

	"github.com/pawlrun/pawl"
)

// Send hands a message over to the server and returns what that said. Its
// errors are those of Dial, or *Error.
func (s *Server) Send(ctx context.Context, m Encoded) (response string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	d, err := s.connect(ctx)
	if err != nil {
		return "", err
	}
	if err := d.envelope(m); err != nil {
		d.quit() // before any of it was sent
		return "", err
	}
	if err := d.write(m.Content); err != nil {
		d.close() // before the dot; without one there is no message
		return "", d.lost(err)
	}
	if !d.release() {
		d.close()
		return "", d.lost(ctx.Err())
	}
	return d.finish(m, s.Timeout)
}

// envelope says who sends the message and who gets it, up to the point where
// the server waits for it.
func (d *dialogue) envelope(m Encoded) error {
	size, sized := d.extensions["SIZE"]
	if most, err := strconv.ParseInt(size, 10, 64); err == nil && most > 0 && int64(len(m.Content)) > most {
		return &Error{
			Class: pawl.ClassLogic, Code: "too_large",
			Msg: "the message is larger than the server takes, which is " + strconv.FormatInt(most, 10) + " bytes",
		}
	}
	from := "MAIL FROM:<" + m.Sender + ">"
	if sized {
		from += " SIZE=" + strconv.Itoa(len(m.Content))
	}
	r, err := d.command("%s", from)
	if err := d.check("MAIL FROM", r, err); err != nil {
		return err
	}
	for _, recipient := range m.Recipients {
		r, err := d.command("RCPT TO:<%s>", recipient)
		if err := d.check("RCPT TO "+recipient, r, err); err != nil {
			return err
		}
	}
	r, err = d.command("DATA")
	if err == nil && r.code == 354 {
		return nil
	}
	if err == nil && r.code < 400 {
		err = errReply
	}
	return d.check("DATA", r, err)
}

// finish sends the dot that makes it a message, and waits for the answer. From
// here on, only the server can say that it did not happen.
func (d *dialogue) finish(m Encoded, wait time.Duration) (response string, err error) {
	_ = d.conn.SetDeadline(time.Now().Add(wait))
	r, err := d.command(".")
	if err != nil {
		d.close()
		return "", unanswered(m, err)
	}
	d.quit()
	switch {
	case r.ok():
		return r.text, nil
	case r.code >= 400:
		return "", refused("the message", r)
	}
	return "", unanswered(m, errReply)
}
