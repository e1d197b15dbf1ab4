// Package execprog runs graphs that are programs of this machine. A program
// gets runner.Body on its standard input and writes what runner.ReadAnswer
// reads to its standard output; what it writes to its standard error is told
// as progress. Its environment is PATH, the variables of the definition, and
// PAWL_IDEMPOTENCY_KEY. One that says callerKey: true gets the key of the caller,
// too, in PAWL_CALLER_KEY.
//
// A program runs in a process group of its own. When its time is over, when it
// is cancelled, and when it wrote more than is read, the group is told to end
// and then killed; what a program leaves behind in its group is killed too.
//
// A program is started once for a run, however it ends: with an exit code, with
// a failure that it tells, without an answer, or because its time was over. One
// that was at work when Pawl crashed or was stopped is not started again either:
// nobody knows how far it came, and it may still be running. Only the answer of a
// person starts it again, because it asked for that. Whoever writes one that can
// be started twice says idempotent: true; its failures are tried again like those
// of other graphs. A schedule can say so, too, or ask for another start after a
// failure that is known; and so can a person.
package execprog

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// callerVariable is where a program finds the key of the caller.
const callerVariable = "PAWL_CALLER_KEY"

// Provider starts programs.
type Provider struct {
	graphs map[string]graph
	going  runner.Going
}

type graph struct {
	command    []string
	env        []string // NAME=value
	dir        string
	timeout    time.Duration
	idempotent bool
	callerKey  bool // tell it the key of the caller
}

// New makes the provider that a definition describes:
//
//	graphs:
//	  poet:
//	    command: [python3, poet.py]
//	    env: {API_KEY: "${API_KEY}"}
//	    dir: ./poet                   # where it runs; default: the definition's folder
//	    timeout: 5m
//	    idempotent: false
//	    callerKey: false              # true: PAWL_CALLER_KEY has the key of the billing account
func New(s *connector.Settings) (runner.Provider, bool) {
	var written struct {
		Graphs map[string]writtenGraph `json:"graphs"`
	}
	s.Read(&written)
	p := &Provider{graphs: map[string]graph{}}
	for name, w := range written.Graphs {
		runner.GraphName(s, name)
		p.graphs[name] = readGraph(s, "/graphs"+definition.Pointer(name), w)
	}
	if len(p.graphs) == 0 {
		s.Add("/graphs", "graphs is missing; it looks like {poet: {command: [python3, poet.py]}}")
	}
	return p, s.OK()
}

type writtenGraph struct {
	Command    []string           `json:"command" definition:"required"`
	Env        definition.Secrets `json:"env"`
	Dir        definition.Secret  `json:"dir"`
	Timeout    time.Duration      `json:"timeout" definition:"default=5m,min=1ms,max=24h"`
	Idempotent bool               `json:"idempotent"`
	CallerKey  bool               `json:"callerKey"`
}

func readGraph(s *connector.Settings, pointer string, w writtenGraph) graph {
	g := graph{dir: definition.Within(s.Folder(), w.Dir.Value), timeout: w.Timeout, idempotent: w.Idempotent, callerKey: w.CallerKey}
	for _, variable := range w.Env {
		if g.callerKey && variable.Name == callerVariable {
			s.AddName(variable.Pointer, "%s is set by callerKey; keep one of them", callerVariable)
		}
	}
	g.env = s.Environment(w.Env)
	g.command = readCommand(s, pointer+"/command", g.dir, w.Command)
	return g
}

func readCommand(s *connector.Settings, pointer, dir string, command []string) []string {
	for i, part := range command {
		if strings.Contains(part, "${") {
			s.Add(pointer+definition.Pointer(i), "arguments are seen by every user of the machine; put secrets into env")
		}
	}
	if len(command) == 0 || s.CheckOnly { // it need not be installed where definitions are checked
		return command
	}
	name := command[0]
	if strings.ContainsRune(name, filepath.Separator) {
		name = definition.Within(dir, name)
	}
	found, err := exec.LookPath(name)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		s.Add(pointer+"/0", "the program %s is not there, or is not a program; install it, or correct command", pawl.Quote(name))
	}
	return append([]string{found}, command[1:]...)
}

// Graphs are those of the definition.
func (p *Provider) Graphs() map[string]runner.Graph {
	graphs := map[string]runner.Graph{}
	for name, g := range p.graphs {
		graphs[name] = runner.Graph{Timeout: g.timeout}
	}
	return graphs
}

// Run starts the program and waits for its end.
func (p *Provider) Run(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
	g, known := p.graphs[r.Name]
	if !known {
		return runner.Final(runner.CodeNotFound, "there is no graph "+pawl.Quote(r.Name)), nil
	}
	memory, err := runner.Remember(r)
	if err != nil {
		return runner.Result{}, err
	}
	if result, refused := g.refuse(memory, r); refused {
		return result, nil
	}
	return p.going.Call(ctx, r, memory, g.timeout, emit, func(ctx context.Context, r runner.Run, key string) (runner.Result, bool, error) {
		result, answered, err := g.run(ctx, r, key, emit)
		result.Retry = result.Retry && (g.idempotent || r.Idempotent || r.Retries)
		return result, answered, err
	})
}

// refuse keeps a program that was started from being started again, unless it
// says that it may be, or asked a person who has answered.
func (g graph) refuse(m runner.Memory, r runner.Run) (runner.Result, bool) {
	switch {
	case g.idempotent, r.Idempotent, m.State == "", m.State == runner.StateAsks && r.Resume != nil:
		return runner.Result{}, false
	case r.Attempt > m.Attempt && (r.Retries || r.Asked): // how it ended is known, or a person has decided
		return runner.Result{}, false
	case m.State == runner.StateGoing && m.Attempt == r.Attempt:
		return runner.Unknown("the program was at work when it was last seen, and its end was not"), true
	}
	return runner.Final(runner.CodeInternal, "the program was started before, and does not say that it may be started twice (idempotent: true)"), true
}

// Cancel ends the program of a run, if it runs here.
func (p *Provider) Cancel(_ context.Context, r runner.Run) error {
	p.going.Stop(r.RunID)
	return nil
}

// run is one start of the program; answered says that the result is its own
// word.
func (g graph) run(ctx context.Context, r runner.Run, key string, emit func(runner.Event) error) (result runner.Result, answered bool, err error) {
	body, err := runner.Body(r)
	if err != nil {
		return runner.Result{}, false, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	output := &answerOutput{full: func() { stop(errTooMuch) }}
	talk := &talkOutput{emit: emit, failed: stop}
	exit, err := g.start(ctx, body, g.environment(r, key), output, talk)
	switch cause := context.Cause(ctx); {
	case err != nil:
		return runner.Final(runner.CodeInternal, "the program could not be started: "+connector.Reason(err).Error()), false, nil
	case errors.Is(cause, errTooMuch):
		return runner.Final(runner.CodeInternal, cause.Error()), false, nil
	case talk.fault != nil:
		return runner.Result{}, false, talk.fault
	}
	if result, ended, err := runner.Ended(ctx); ended {
		return result, false, err
	}
	result, readable, err := runner.ReadAnswer(output.bytes(), emit)
	switch {
	case err != nil:
		return runner.Result{}, false, err
	case exit != nil && (!readable || result.OK):
		return runner.Failure(runner.CodeInternal, fmt.Sprintf("the program ended with %s%s", exit, talk.lastLine())), false, nil
	case !readable:
		return runner.Failure(runner.CodeInternal, "the output of the program is not an object with ok: true or false"), false, nil
	}
	return result, true, nil
}
