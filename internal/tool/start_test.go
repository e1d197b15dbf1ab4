package tool

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// learner is a connection that knows its methods once it is started.
type learner struct {
	Connection // nil: it is never called
	mu         sync.Mutex
	methods    []Method
	closed     error
}

func (l *learner) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.methods = []Method{{Name: "send", Mutation: true}}
}

func (l *learner) Methods() []Method {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.methods
}

func (l *learner) Close() error { return l.closed }

func TestConnectionThatLearnsItsMethodsIsNotReadyBefore(t *testing.T) {
	one := &learner{closed: errors.New("it is stuck")}
	set := &Set{members: map[string]member{"one": {Named: Named{Name: "one", Connection: one, Policy: map[string]Policy{"send": Allow, "sned": Deny}}}}}
	_, err := set.Lookup("one", "send")
	fault, ok := errors.AsType[*connector.Error](err)
	if !ok || fault.Class != pawl.ClassTransient || fault.Code != "not_ready" || !fault.NotApplied {
		t.Errorf("Lookup() = %v before it is started", err)
	}
	var log bytes.Buffer
	set.start(slog.New(slog.NewTextHandler(&log, nil)))
	if target, err := set.Lookup("one", "send"); err != nil || target.Policy != Allow {
		t.Errorf("Lookup() = %v, %v", target, err)
	}
	if _, err := set.Lookup("one", "receive"); err == nil || strings.Contains(err.Error(), "nobody knows") {
		t.Errorf("Lookup(receive) = %v", err)
	}
	if !strings.Contains(log.String(), "sned") || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log has: %s", log.String())
	}
	if err := set.Close(); err == nil || err.Error() != "close the connection one: it is stuck" {
		t.Errorf("Close() = %v", err)
	}
}

// What is outside must neither be asked when definitions are checked nor keep
// Pawl from starting.
func TestPolicyForMethodsThatAreNotKnownYetIsAccepted(t *testing.T) {
	dir := t.TempDir()
	definition := "kind: connection\nname: one\ntype: mcp\nurl: https://mcp.invalid/mcp\npolicy: {send: allow, drop: denny}\n"
	if err := os.WriteFile(filepath.Join(dir, "one.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(dir, Env{CheckOnly: true, Getenv: func(string) string { return "" }})
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || len(e.Fields) != 1 || !strings.Contains(e.Fields[0].Message, "unknown policy") {
		t.Errorf("Load() = %v; want the one fault in the policy of drop", err)
	}
}
