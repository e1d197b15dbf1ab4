package proxy

import (
	"bytes"
	"encoding/binary"
)

// answers reads what the server says, message by message.
type answers struct {
	p      *Proxy
	rest   []byte // of a message that has not come whole
	losing bool   // an answer that is to be lost was found
}

const (
	commandComplete = 'C'
	readyForQuery   = 'Z'
)

// lose reports whether the answer that ends here is to be lost. The server says
// that a statement is complete before it commits what the statement implied, and
// that it is ready afterwards; so the connection breaks then.
func (a *answers) lose(b []byte) bool {
	a.rest = append(a.rest, b...)
	for len(a.rest) >= 5 {
		size := 1 + int(binary.BigEndian.Uint32(a.rest[1:5]))
		if len(a.rest) < size {
			break
		}
		kind, body := a.rest[0], a.rest[5:size]
		a.rest = a.rest[size:]
		switch {
		case a.losing && kind == readyForQuery:
			return true
		case !a.losing && kind == commandComplete:
			tag, _, _ := bytes.Cut(body, []byte{0})
			a.losing = a.p.matching(string(tag))
		}
	}
	return false
}
