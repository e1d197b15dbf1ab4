package script

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// hostile is the body of a handler that means harm, or is badly wrong.
type hostile struct {
	name string
	body string
	// ends are the endings that are right; the first that the others do not
	// outrun.
	ends []error
}

// hostileLimits end a bad script soon. Processor time counts what a script
// uses itself, so that a busy machine does not change the outcome.
var hostileLimits = Limits{
	CPU: 300 * time.Millisecond, Wall: 5 * time.Minute, Heap: 16 << 20,
	HostCalls: 200, Payload: 64 << 10, Output: 64 << 10, Log: 8 << 10,
}

// patientLimits are for scripts that are to meet another limit than that of
// time, also under the race detector.
var patientLimits = func() Limits {
	l := hostileLimits
	l.CPU, l.Heap = 2*time.Minute, 8<<20
	return l
}()

// runHostile runs each script while a phase of another script is under way in
// the same pool, and checks that nobody but the script itself has suffered.
func runHostile(t *testing.T, limits Limits, scripts []hostile) {
	p := newTestPool(t, Config{Workers: 2})
	release := make(chan struct{})
	bystander := make(chan error, 1)
	started := make(chan struct{})
	host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		close(started)
		<-release
		return json.RawMessage(`"well"`), nil
	}}
	program := compileTest(t, handler(`return await ctx.tools.slow.call()`))
	go func() {
		result, err := p.Run(t.Context(), Request{Program: program, Handler: handlerPath}, host, Limits{Wall: time.Hour})
		if err == nil && string(result.Value) != `"well"` {
			err = errors.New("it got " + string(result.Value))
		}
		bystander <- err
	}()
	<-started
	for _, script := range scripts {
		t.Run(script.name, func(t *testing.T) { runOneHostile(t, p, limits, script) })
	}
	close(release)
	if err := <-bystander; err != nil {
		t.Errorf("a phase beside them: %v", err)
	}
}

func runOneHostile(t *testing.T, p *Pool, limits Limits, script hostile) {
	host := &fakeHost{answer: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New("no")
	}}
	result, err := runBody(t, p, script.body, host, limits)
	if len(script.ends) == 0 && err != nil {
		t.Errorf("it ended with %v, and should have succeeded", err)
	}
	if len(script.ends) > 0 && !isAny(err, script.ends) {
		t.Errorf("it ended with %v (value %.100s), want %v", err, result.Value, script.ends)
	}
	if result.Wall > 2*time.Minute {
		t.Errorf("it took %s", result.Wall) // an order of magnitude, for slow machines
	}
	if got := valueOf(t, p, `return [typeof globalThis.polluted, [].polluted, {}.polluted, 1 + 1]`, nil); got != `["undefined",null,null,2]` {
		t.Errorf("the next phase got %s", got)
	}
}

func isAny(err error, targets []error) bool {
	for _, target := range targets {
		if thrown, ok := errors.AsType[*Thrown](target); ok {
			got, is := errors.AsType[*Thrown](err)
			if is && (thrown.Name == "" || thrown.Name == got.Name) {
				return true
			}
		} else if errors.Is(err, target) {
			return true
		}
	}
	return false
}
