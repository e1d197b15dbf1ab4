package tool

import "encoding/json"

// Redact returns a JSON value in whose strings the secrets of all connections
// are replaced by their names: [secret SHOP_TOKEN]. All else stays as it is.
// It guards what is recorded and shown; connections do not depend on it.
func (s *Set) Redact(raw json.RawMessage) json.RawMessage { return s.secrets.JSON(raw) }

// RedactText is Redact for a text, such as a line of a log.
func (s *Set) RedactText(text string) string { return s.secrets.Text(text) }
