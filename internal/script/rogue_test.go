package script

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// rogueWord makes the tests' program a worker that was taken over.
const rogueWord = "rogue-worker"

// rogue is such a worker: it has said hello and was given phase id.
type rogue struct{ id uint32 }

func (rogue) send(k kind, id uint32, payload string) {
	_, _ = rawFile(1).Write(appendFrame(nil, frame{kind: k, id: id, payload: []byte(payload)}))
}

// wait is how a rogue goes on after its deed: it has all the time.
func (rogue) wait() {
	_, _ = io.Copy(io.Discard, rawFile(0))
	os.Exit(0)
}

// rogueDeeds is what workers might do. All but a few break the protocol.
func rogueDeeds() map[string]func(r rogue) {
	call := "tool\x00place\x00{}"
	return map[string]func(r rogue){
		"unknown kind":           func(r rogue) { r.send('?', r.id, "") },
		"frame for a worker":     func(r rogue) { r.send(toAnswer, r.id, "1") },
		"second hello":           func(r rogue) { r.send(fromHello, 0, "{}") },
		"compilation":            func(r rogue) { r.send(fromCompiled, r.id, "{}") },
		"drop that nobody asked": func(r rogue) { r.send(fromDropped, r.id, "") },
		"huge frame": func(rogue) {
			_, _ = rawFile(1).Write(binary.LittleEndian.AppendUint32([]byte{byte(fromCall), 1, 0, 0, 0}, 1<<32-1))
		},
		"call over the limit":      func(r rogue) { r.send(fromCall, 1, "tool\x00\x00\""+strings.Repeat("x", 1<<20)+"\"") },
		"call without parts":       func(r rogue) { r.send(fromCall, 1, "tool") },
		"call that is not JSON":    func(r rogue) { r.send(fromCall, 1, "tool\x00\x00{") },
		"call of another kind":     func(r rogue) { r.send(fromCall, 1, "shell\x00\x00{}") },
		"call that should be told": func(r rogue) { r.send(fromCall, 1, "publish\x00\x00{}") },
		"told that should be call": func(r rogue) { r.send(fromTell, 1, call) },
		"same call twice":          func(r rogue) { r.send(fromCall, 1, call); r.send(fromCall, 1, call) },
		"calls in flight": func(r rogue) {
			for i := range uint32(1000) {
				r.send(fromCall, i, call)
			}
		},
		"calls without end": func(r rogue) {
			for {
				r.send(fromTell, 0, "publish\x00\x00{}")
			}
		},
		"logs without end": func(r rogue) {
			for {
				r.send(fromLog, 0, "info\x00x")
			}
		},
		"log of no level":          func(r rogue) { r.send(fromLog, 0, "loud\x00x") },
		"program twice":            func(r rogue) { r.send(fromNeed, r.id, ""); r.send(fromNeed, r.id, "") },
		"end of another":           func(r rogue) { r.send(fromDone, r.id+1, "{}\n") },
		"end without a header":     func(r rogue) { r.send(fromDone, r.id, "") },
		"end with another value":   func(r rogue) { r.send(fromDone, r.id, "{}\n1") },
		"value that is not JSON":   func(r rogue) { r.send(fromDone, r.id, "{\"hasValue\":true}\n{") },
		"value over the limit":     func(r rogue) { r.send(fromDone, r.id, "{\"hasValue\":true}\n\""+strings.Repeat("x", 70<<10)+"\"") },
		"failure that is not JSON": func(r rogue) { r.send(fromFailed, r.id, "x") },
		"zeros": func(rogue) {
			for {
				if _, err := rawFile(1).Write(make([]byte, 1<<16)); err != nil {
					os.Exit(0)
				}
			}
		},
		"half a frame": func(rogue) { _, _ = rawFile(1).Write([]byte{byte(fromCall), 1}); os.Exit(0) },
		"half a payload": func(rogue) {
			_, _ = rawFile(1).Write([]byte{byte(fromLog), 0, 0, 0, 0, 9, 0, 0, 0, 'x'})
			os.Exit(0)
		},
		"exit":    func(rogue) { os.Exit(3) },
		"panic":   func(rogue) { panic("rogue") },
		"silence": func(r rogue) { r.wait() },
		"spin": func(rogue) {
			for n := 0; n >= 0; n++ {
				n &= 1
			}
		},
		"odd text": func(r rogue) {
			r.send(fromLog, 0, "info\x00\xff\xfe")
			r.send(fromDone, r.id, "{\"hasValue\":true,\"cpu\":-5}\n[\"\xff\",\"\\ud800\\udc00\\udc00\\\\ud800\"]")
			r.wait()
		},
	}
}

// rogueMain is the program of a rogue.
func rogueMain(deed string) {
	r := rogue{}
	switch deed {
	case "silent-exit":
		os.Exit(0)
	case "wrong-hello":
		r.send(fromHello, 0, `{"protocol":0}`)
		r.wait()
	}
	r.send(fromHello, 0, `{"protocol":2}`)
	f, err := readFrame(bufio.NewReader(rawFile(0)), toLimit)
	if err != nil {
		os.Exit(9)
	}
	r.id = f.id
	rogueDeeds()[deed](r)
	r.wait()
}

// runRogue has a rogue run a phase.
func runRogue(t *testing.T, deed string) (Result, error) {
	t.Helper()
	p := newTestPool(t, Config{})
	cmd, err := workerCommand(p.cfg.Heap)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args = []string{"pawl", rogueWord, deed}
	w, err := launch(cmd, p.threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.kill(); <-w.gone })
	if err := w.greet(t.Context()); err != nil {
		t.Fatalf("greet: %v", err)
	}
	limits := hostileLimits
	limits.CPU, limits.Wall = 50*time.Millisecond, 10*time.Second
	if deed == "silence" {
		limits.Wall = 50 * time.Millisecond
	}
	host := &fakeHost{answer: func(ctx context.Context, op string, _ json.RawMessage) (json.RawMessage, error) {
		if op == "tool" {
			<-ctx.Done()
		}
		return nil, nil
	}}
	x, payload, err := p.prepare(Request{Program: compileTest(t, handler("return 1")), Handler: handlerPath}, host, limits)
	if err != nil {
		t.Fatal(err)
	}
	x.w = w
	err = x.converse(t.Context(), payload)
	if x.reusable && err != nil {
		t.Error("the worker would be used again")
	}
	x.cancelHost()
	x.calls.Wait()
	return x.result, err
}

// Whatever a worker does, the server ends the phase and is unharmed.
func TestWorkerIsNotBelieved(t *testing.T) {
	for deed := range rogueDeeds() {
		t.Run(deed, func(t *testing.T) {
			result, err := runRogue(t, deed)
			switch deed {
			case "silence", "spin":
				limit, ok := errors.AsType[*LimitError](err)
				if !ok || (limit.Limit == LimitWall) != (deed == "silence") {
					t.Errorf("got %v", err)
				}
			case "odd text":
				if err != nil || string(result.Value) != `["`+"\uFFFD"+`","\ud800\udc00\ufffd\\ud800"]` || result.CPU != 0 {
					t.Errorf("%v, value %s", err, result.Value)
				}
				if len(result.Logs) != 1 || !utf8.ValidString(result.Logs[0].Text) {
					t.Errorf("logs %q", result.Logs)
				}
			default:
				if !errors.Is(err, ErrWorkerCrashed) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

func TestWorkerThatSaysNoHelloIsNotUsed(t *testing.T) {
	p := newTestPool(t, Config{})
	for _, word := range []string{"silent-exit", "wrong-hello"} {
		cmd, err := workerCommand(p.cfg.Heap)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Args = []string{"pawl", rogueWord, word}
		w, err := launch(cmd, p.threads)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.greet(t.Context()); err == nil {
			t.Errorf("%s: greeted", word)
		}
		w.kill()
		<-w.gone
	}
}
