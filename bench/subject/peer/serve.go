package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// closeGrace is how long an engine may take to stop, or a process to end.
const closeGrace = 15 * time.Second

// Main serves one request, and ends the process with 1 if it failed.
func Main(p Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	answer := p.serve(ctx, os.Stdin, func() {
		time.AfterFunc(closeGrace, func() { os.Exit(1) }) // whatever the engine waits for
	})
	stop()
	err := json.NewEncoder(os.Stdout).Encode(answer)
	if err != nil || answer.Error != "" {
		os.Exit(1)
	}
}

// serve reads the request and measures. The end of in, of which alone is told,
// or of ctx ends it.
func (p Program) serve(ctx context.Context, in io.Reader, alone func()) Answer {
	answer := Answer{Version: version(p.Module)}
	err := func() error {
		var req Request
		lines := json.NewDecoder(in)
		if err := lines.Decode(&req); err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, req.Limit, fmt.Errorf("not done in %v", req.Limit))
		defer cancel()
		ctx, gone := context.WithCancelCause(ctx)
		defer gone(nil)
		go func() {
			_, _ = io.Copy(io.Discard, in)
			gone(errors.New("nobody waits for the answer"))
			alone()
		}()
		answer.AtOnce = p.AtOnce
		if req.OneByOne {
			answer.AtOnce = 1
		}
		took, err := p.measure(ctx, req, answer.AtOnce)
		answer.Seconds = took.Seconds()
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return err
	}()
	if err != nil {
		answer.Error = err.Error()
	}
	return answer
}

func (p Program) measure(ctx context.Context, req Request, atOnce int) (time.Duration, error) {
	engine, err := p.Open(ctx, req.Database)
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	defer closeSoon(engine)
	if err := drive(ctx, engine, req.WarmUp, atOnce); err != nil {
		return 0, fmt.Errorf("warm up: %w", err)
	}
	if err := await(ctx, engine, req.WarmUp); err != nil {
		return 0, fmt.Errorf("warm up: %w", err)
	}
	before, begun := engine.Executed(), time.Now()
	if err := drive(ctx, engine, req.Workflows, atOnce); err != nil {
		return 0, err
	}
	if err := await(ctx, engine, req.WarmUp+req.Workflows); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	if got, want := engine.Executed()-before, req.Workflows*Steps; got != want {
		return 0, fmt.Errorf("%d steps were executed, which should be %d", got, want)
	}
	return took, nil
}

// drive runs n workflows, so many at once, until their callers know that they
// are done. The first error ends it.
func drive(ctx context.Context, engine Engine, n, atOnce int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var begun atomic.Int64
	var wg sync.WaitGroup
	for range min(atOnce, n) {
		wg.Go(func() {
			for ctx.Err() == nil && begun.Add(1) <= int64(n) {
				if err := engine.Run(ctx); err != nil {
					cancel(fmt.Errorf("run a workflow: %w", err))
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// await waits until the database says that so many workflows are done.
func await(ctx context.Context, engine Engine, want int) error {
	for {
		done, err := engine.Done(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("count workflows: %w", err)
		case done == want:
			return nil
		case done > want:
			return fmt.Errorf("the database has %d workflows that are done, of %d", done, want)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the database has %d workflows that are done, of %d", done, want)
		case <-time.After(time.Millisecond):
		}
	}
}

// closeSoon stops an engine, but waits for it only so long.
func closeSoon(engine Engine) {
	closed := make(chan struct{})
	go func() { engine.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(closeGrace):
	}
}

// version is that of a module which this program is built with.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return "unknown"
}
