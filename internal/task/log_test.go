package task

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store"
)

func TestMain(m *testing.M) { migrated.Main(m) }

func TestLogWritesOneLine(t *testing.T) {
	var out bytes.Buffer
	task := Log(slog.New(slog.NewTextHandler(&out, nil)))
	for payload, want := range map[string]string{`{"message":"hello\nworld"}`: `message="hello\nworld"`, `[1,2]`: `message=[1,2]`} {
		out.Reset()
		j := &queue.Job{Job: store.Job{ID: 7, Payload: json.RawMessage(payload)}}
		if err := task.Run(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %s", payload, got)
		}
	}
}
