package relay

import (
	"encoding/json"
	"testing"
)

// FuzzHeard: anybody can send a message. None makes it panic, or makes it keep more
// than it may.
func FuzzHeard(f *testing.F) {
	for _, text := range []string{"n hello", "n want events lanes", "n told 1", "n told", " ", "", "n", "n want", "n told 1 2", "\x00 told \xff"} {
		f.Add(text, 3)
	}
	r := New(Config{})
	f.Fuzz(func(t *testing.T, message string, times int) {
		for range min(max(times, 0), 2*mostUnheard) {
			r.heard(message)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.unheard) > mostUnheard || len(r.wanted) > mostNodes {
			t.Fatalf("it keeps %d messages and %d nodes", len(r.unheard), len(r.wanted))
		}
	})
}

// FuzzNews: a row that another node wrote is read or left alone, and is the same when
// it is told on.
func FuzzNews(f *testing.F) {
	for _, text := range []string{`{}`, `{"events":[{}],"lanes":["a"],"lost":1}`, `{"lost":-1}`, `[]`, `null`, `{"events":[{"data":{"a":1}}]}`, "\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var news, again News
		if json.Unmarshal(text, &news) != nil {
			return
		}
		raw, err := json.Marshal(news)
		if err != nil {
			t.Fatalf("%s cannot be told on: %v", text, err)
		}
		if err := json.Unmarshal(raw, &again); err != nil || len(again.Events) != len(news.Events) || len(again.Lanes) != len(news.Lanes) {
			t.Fatalf("%s became %s: %v", text, raw, err)
		}
	})
}
