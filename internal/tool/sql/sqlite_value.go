package sqltool

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
)

// sqliteParams turns JSON values into those of SQLite: lists and objects are
// JSON texts, true is 1.
func sqliteParams(params []json.RawMessage) []any {
	values := make([]any, len(params))
	for i, param := range params {
		values[i] = sqliteParam(bytes.TrimSpace(param))
	}
	return values
}

func sqliteParam(param json.RawMessage) any {
	switch param[0] {
	case 'n':
		return nil
	case 't':
		return int64(1)
	case 'f':
		return int64(0)
	case '"':
		return textOf(param)
	case '{', '[':
		return string(param)
	}
	if n, err := strconv.ParseInt(string(param), 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(string(param), 64) // too large is infinite
	return f
}

// sqliteRow converts the values of a row.
func sqliteRow(types []*sql.ColumnType, values []any) []json.RawMessage {
	row := make([]json.RawMessage, len(values))
	for i, value := range values {
		row[i] = sqliteValue(types[i].DatabaseTypeName(), value)
	}
	return row
}

// sqliteValue converts a value. In SQLite the type is that of the value; the
// declared one only helps where JSON has more types than SQLite.
func sqliteValue(declared string, value any) json.RawMessage {
	switch v := value.(type) {
	case nil:
		return null()
	case int64:
		if (declared == "BOOLEAN" || declared == "BOOL") && (v == 0 || v == 1) {
			return json.RawMessage(strconv.FormatBool(v == 1))
		}
		return wholeNumber(v)
	case float64:
		return floatNumber(v)
	case []byte:
		return encodeText(base64.StdEncoding.EncodeToString(v))
	case time.Time: // what the driver makes of texts in columns of times
		if declared == "DATE" && v.Equal(v.Truncate(24*time.Hour)) {
			return encodeText(v.Format(time.DateOnly))
		}
		return encodeText(v.UTC().Format(time.RFC3339Nano))
	case string:
		if declared == "JSON" && json.Valid([]byte(v)) {
			return json.RawMessage(v)
		}
		return encodeText(v)
	}
	return null()
}
