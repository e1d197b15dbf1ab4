package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pawlrun/pawl"
)

// The limits of a compilation. Real scripts take a few milliseconds.
const (
	compileCPU  = 5 * time.Second
	compileWall = 30 * time.Second
)

// Compile is the function Compile, done by a worker: a source that brings the
// compiler down ends a worker and is a fault of the source.
func (p *Pool) Compile(ctx context.Context, file, source string) (*Program, error) {
	file = cleanName(file)
	if len(source) > MaxSource {
		return Compile(file, source) // which refuses it
	}
	ctx, leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	w, err := p.acquire(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("wait for a script worker: %w", err)
	}
	made, err := w.compile(ctx, file, source)
	if err != nil {
		p.discard(w)
		return nil, err
	}
	p.release(w)
	if len(made.Faults) > 0 {
		return nil, invalid(file, made.Faults...)
	}
	program := NewProgram(file, made.JavaScript, []byte(made.SourceMap))
	program.Version, program.Warnings = version(file, source), made.Warnings
	return program, nil
}

// compile has the worker compile. After an error the worker must go.
func (w *worker) compile(ctx context.Context, file, source string) (made compiled, err error) {
	id := w.begin()
	defer w.end()
	deadline := time.Now().Add(compileWall)
	if err := w.setDeadlines(deadline, deadline); err != nil {
		return made, err
	}
	defer context.AfterFunc(ctx, w.wake)()
	err = w.write(id, frame{kind: toCompile, id: id, payload: []byte(file + "\x00" + source)})
	var f frame
	if err == nil {
		f, err = readFrame(w.reader, func(k kind) int {
			if k == fromCompiled {
				return mostProgram
			}
			return -1
		})
	}
	if err == nil && f.id == id && json.Unmarshal(f.payload, &made) == nil {
		return made, nil
	}
	return made, w.compileFailed(ctx, file, err)
}

// compileFailed says why a worker did not answer.
func (w *worker) compileFailed(ctx context.Context, file string, err error) error {
	w.kill()
	<-w.gone
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("compile %s: %w", file, context.Cause(ctx))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &pawl.Error{Code: pawl.CodeUnavailable, Op: "compile " + file, Msg: "it takes too long; the machine may be too busy"}
	}
	return invalid(file, Diagnostic{
		Place:   Place{File: file},
		Message: "the script is too deeply nested or too complex to compile (" + w.epitaph() + ")",
		Hint:    "write long or deeply nested expressions as several shorter ones",
	})
}
