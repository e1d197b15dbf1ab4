package runner

import (
	"encoding/json"
	"testing"
)

// FuzzReadAnswer: whatever a graph answers, it has one end, and no usage that is less
// than nothing.
func FuzzReadAnswer(f *testing.F) {
	for _, text := range []string{
		`{"ok":true,"output":{"a":1}}`, `{"ok":false,"error":{"code":"x","message":"y"}}`, `{"ok":null}`, `{"ok":true,"interrupt":"may I?"}`, `{"ok":true,"usage":[{"unit":"a","model":"m","inputTokens":-1,"costUsd":1e99}]}`,
		`{"ok":true,"usage":{}}`, `{"ok":false,"error":"}"}`, `{"ok":false,"error":{"code":"grant_missing"}}`, `[]`, `{"ok":true,"traceId":7}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		result, readable, err := ReadAnswer(raw, func(e Event) error {
			if e.Usage != nil && (e.Usage.InputTokens < 0 || e.Usage.OutputTokens < 0 || e.Usage.CachedTokens < 0 || e.Usage.Cost < 0) {
				t.Fatalf("%s used %+v", raw, e.Usage)
			}
			return nil
		})
		if err != nil || readable && !json.Valid(raw) {
			t.Fatalf("%s: %+v, %v", raw, result, err)
		}
		_, _ = ErrorOf(raw)
	})
}
