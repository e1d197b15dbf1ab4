package sqltool

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// elementType is the type of the elements of an array, for the types that
// every server has.
func elementType(of uint32) (element uint32, isArray bool) {
	switch of {
	case pgtype.BoolArrayOID:
		return pgtype.BoolOID, true
	case pgtype.Int2ArrayOID, pgtype.Int4ArrayOID, pgtype.Int8ArrayOID, pgtype.OIDArrayOID:
		return pgtype.Int8OID, true
	case pgtype.Float4ArrayOID, pgtype.Float8ArrayOID:
		return pgtype.Float8OID, true
	case pgtype.NumericArrayOID:
		return pgtype.NumericOID, true
	case pgtype.JSONArrayOID, pgtype.JSONBArrayOID:
		return pgtype.JSONOID, true
	case pgtype.ByteaArrayOID:
		return pgtype.ByteaOID, true
	case pgtype.TimestampArrayOID, pgtype.TimestamptzArrayOID:
		return pgtype.TimestampOID, true
	case pgtype.TextArrayOID, pgtype.VarcharArrayOID, pgtype.BPCharArrayOID, pgtype.NameArrayOID, pgtype.QCharArrayOID,
		pgtype.UUIDArrayOID, pgtype.DateArrayOID, pgtype.TimeArrayOID, pgtype.TimetzArrayOID, pgtype.IntervalArrayOID,
		pgtype.InetArrayOID, pgtype.CIDRArrayOID, pgtype.MacaddrArrayOID:
		return pgtype.TextOID, true
	}
	return 0, false
}

// parseArray reads an array such as {1,NULL,3} or {{"a,b",c},{d,e}}.
func parseArray(text string, element uint32) (json.RawMessage, bool) {
	if strings.HasPrefix(text, "[") { // bounds that do not begin at 1: [2:3]={a,b}
		_, text, _ = strings.Cut(text, "=")
	}
	p := arrayParser{rest: text, element: element}
	if !p.list() || p.rest != "" {
		return nil, false
	}
	return p.out.Bytes(), true
}

// arrayParser writes JSON while it reads.
type arrayParser struct {
	rest    string
	element uint32
	out     bytes.Buffer
}

// list reads from { to }.
func (p *arrayParser) list() bool {
	if !p.take('{') {
		return false
	}
	p.out.WriteByte('[')
	for first := true; !p.take('}'); first = false {
		if !first {
			if !p.take(',') {
				return false
			}
			p.out.WriteByte(',')
		}
		if !p.value() {
			return false
		}
	}
	p.out.WriteByte(']')
	return true
}

func (p *arrayParser) value() bool {
	switch {
	case p.rest == "":
		return false
	case p.rest[0] == '{':
		return p.list()
	case p.rest[0] == '"':
		return p.quoted()
	}
	end := strings.IndexAny(p.rest, ",}")
	if end <= 0 {
		return false
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	if word == "NULL" {
		p.out.Write(null())
	} else {
		p.out.Write(postgresValue(p.element, []byte(word)))
	}
	return true
}

func (p *arrayParser) quoted() bool {
	text := []byte{}
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			p.out.Write(postgresValue(p.element, text))
			return true
		case c == '\\' && i+1 < len(p.rest):
			i++
			text = append(text, p.rest[i])
		default:
			text = append(text, c)
		}
	}
	return false
}

func (p *arrayParser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}
