package script

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/internal/visible"
)

// host takes a message of the prelude. After the ending it stops whatever
// still runs: promises may have swallowed the first stop.
func (p *phase) host(op, text string) string {
	if p.preparing || p.over() {
		p.halt()
	}
	switch op {
	case "call":
		return strconv.FormatUint(uint64(p.call(text)), 10)
	case "tell":
		p.count(text)
		p.w.send(frame{kind: fromTell, payload: []byte(text)})
	case "over":
		p.stop(LimitHostCalls)
	case "log":
		p.log(text)
	case "input":
		return p.inputOf(text)
	case "nothing", "value", "thrown":
		p.settle(op, text)
		p.engine.interrupt() // what the handler left running ends with it
	}
	return ""
}

// settle ends the phase as the handler ended.
func (p *phase) settle(op, text string) {
	switch {
	case op == "nothing":
		p.finish(ending{})
	case op == "thrown":
		var thrown scriptError
		if err := json.Unmarshal([]byte(text), &thrown); err != nil {
			os.Exit(exitProtocol) // the prelude wrote it
		}
		p.throw(&thrown)
	case len(text) > p.limits.Output:
		p.finish(ending{Limit: LimitOutput})
	default:
		p.value = text
		p.finish(ending{HasValue: true})
	}
}

// stop ends the phase at a limit.
func (p *phase) stop(limit Limit) {
	p.finish(ending{Limit: limit})
	p.halt()
}

// halt ends the script: no catch and no finally block runs. A promise executor
// or an async function swallows this, so the interrupt ends what goes on.
func (p *phase) halt() {
	p.engine.interrupt()
	panic(stopped{})
}

func (p *phase) call(text string) uint32 {
	p.count(text)
	p.w.lastCall++
	id := p.w.lastCall
	p.inFlight[id] = struct{}{}
	p.w.send(frame{kind: fromCall, id: id, payload: []byte(text)})
	return id
}

// count holds the limits of calls.
func (p *phase) count(text string) {
	p.calls++
	if p.calls > p.limits.HostCalls {
		p.stop(LimitHostCalls)
	}
	if len(text)-strings.LastIndexByte(text, 0)-1 > p.limits.Payload {
		p.stop(LimitPayload)
	}
}

// log sends a line, or the first that does not fit as an empty one, from which
// the other side knows that lines are missing.
func (p *phase) log(text string) {
	level, line, _ := strings.Cut(text, "\x00")
	line = visible.Truncate(line, mostLine-64)
	before := p.logged
	p.logged += len(line) + lineCost
	switch {
	case p.logged <= p.limits.Log:
		p.w.send(frame{kind: fromLog, payload: []byte(level + "\x00" + line)})
	case before <= p.limits.Log:
		p.w.send(frame{kind: fromLog})
	}
}

func (p *phase) inputOf(text string) string {
	var input struct{ Source, Type, ID string }
	if err := json.Unmarshal([]byte(text), &input); err != nil {
		os.Exit(exitProtocol) // the prelude wrote it
	}
	return InputID(p.scope, input.Source, input.Type, input.ID)
}
