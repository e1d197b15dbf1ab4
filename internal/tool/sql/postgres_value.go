package sqltool

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// postgresValue converts a value from the text that the server sends. Types
// that JSON has no word for stay texts.
func postgresValue(of uint32, value []byte) json.RawMessage {
	if value == nil {
		return null()
	}
	text := string(value)
	switch of {
	case pgtype.BoolOID:
		return json.RawMessage(strconv.FormatBool(text == "t"))
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return wholeNumber(n)
		}
	case pgtype.Float4OID, pgtype.Float8OID:
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return floatNumber(f)
		}
	case pgtype.NumericOID:
		return decimalNumber(text)
	case pgtype.JSONOID, pgtype.JSONBOID:
		if json.Valid(value) {
			return json.RawMessage(text)
		}
	case pgtype.ByteaOID:
		if raw, err := hex.DecodeString(strings.TrimPrefix(text, `\x`)); err == nil {
			return encodeText(base64.StdEncoding.EncodeToString(raw))
		}
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		return encodeText(isoTime(text))
	}
	if element, isArray := elementType(of); isArray {
		if list, ok := parseArray(text, element); ok {
			return list
		}
	}
	return encodeText(text)
}

// isoTime turns 2026-01-02 03:04:05+00 into 2026-01-02T03:04:05Z. The session
// is in UTC. What has another form, such as infinity, stays as it is.
func isoTime(text string) string {
	date, clock, found := strings.Cut(text, " ")
	if !found || strings.Contains(clock, " ") { // years before Christ end in BC
		return text
	}
	if utc, hasZone := strings.CutSuffix(clock, "+00"); hasZone {
		clock = utc + "Z"
	}
	return date + "T" + clock
}
