package sqltool

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// hasList reports whether one of the parameters is a JSON array.
func hasList(params []json.RawMessage) bool {
	for _, param := range params {
		if bytes.HasPrefix(bytes.TrimSpace(param), []byte("[")) {
			return true
		}
	}
	return false
}

// postgresParams writes parameters as the server reads them: texts as they
// are, lists as arrays, objects as JSON. The types are needed for lists only.
func postgresParams(params []json.RawMessage, types []uint32) [][]byte {
	values := make([][]byte, len(params))
	for i, param := range params {
		var of uint32
		if i < len(types) {
			of = types[i]
		}
		values[i] = postgresParam(param, of)
	}
	return values
}

// postgresParam is nil for null.
func postgresParam(param json.RawMessage, of uint32) []byte {
	param = bytes.TrimSpace(param)
	switch param[0] {
	case 'n':
		return nil
	case '"':
		return []byte(textOf(param))
	case '[':
		if of != pgtype.JSONOID && of != pgtype.JSONBOID {
			return []byte(arrayLiteral(param))
		}
	}
	return param
}

// arrayLiteral writes a JSON array in the way of PostgreSQL.
func arrayLiteral(list json.RawMessage) string {
	var values []json.RawMessage
	_ = json.Unmarshal(list, &values) // it was decoded before
	elements := make([]string, len(values))
	for i, value := range values {
		switch value = bytes.TrimSpace(value); value[0] {
		case 'n':
			elements[i] = "NULL"
		case '[':
			elements[i] = arrayLiteral(value)
		case '"':
			elements[i] = quoteElement(textOf(value))
		default:
			elements[i] = quoteElement(string(value))
		}
	}
	return "{" + strings.Join(elements, ",") + "}"
}

func quoteElement(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// textOf is the text in a string of JSON.
func textOf(literal json.RawMessage) string {
	var text string
	_ = json.Unmarshal(literal, &text) // it was decoded before
	return text
}
