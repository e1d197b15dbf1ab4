package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
)

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	stream := ": hello\n\n" +
		"event: job\nid: 1\ndata: one\n\n" +
		"data: two\r\ndata:  lines\r\n\r\n" + // no event name, CRLF, one blank is dropped
		"event: gone\n\n" + // without data it is no event, and its name does not stay
		"data\n\n" +
		"id: 4\nretry: 10\ndata: {}\n\n" +
		"data: cut off"
	want := []StreamEvent{
		{ID: "1", Type: "job", Data: []byte("one")},
		{ID: "1", Type: "message", Data: []byte("two\n lines")},
		{ID: "1", Type: "message", Data: []byte("")},
		{ID: "4", Type: "message", Data: []byte("{}")},
	}
	var got []StreamEvent
	reader := newEventReader(strings.NewReader(stream))
	for {
		e, err := reader.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// streamOf writes events and keeps the connection until the client goes, or
// ends it.
func streamOf(w http.ResponseWriter, r *http.Request, stay bool, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for _, e := range events {
		_, _ = io.WriteString(w, e)
	}
	_ = http.NewResponseController(w).Flush()
	if stay {
		<-r.Context().Done()
	}
}

func TestWatchConnectsAgainWhereItWas(t *testing.T) {
	var connections atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := connections.Add(1)
		switch {
		case r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != streamPath:
			http.Error(w, "unexpected request", http.StatusTeapot)
		case n == 2: // the server restarts
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code":"unavailable","detail":"starting"}`)
		default:
			streamOf(w, r, n > 1, fmt.Sprintf("id: %d\ndata: after %q\n\n", n, r.Header.Get("Last-Event-ID")))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []string
	err := c.Watch(ctx, Watcher{
		CatchUp: func(context.Context) error { told = append(told, "connected"); return nil },
		Event: func(e StreamEvent) error {
			told = append(told, string(e.Data))
			if e.ID == "3" {
				cancel()
			}
			return nil
		},
	})
	if err != nil {
		t.Errorf("the regular end is an error: %v", err)
	}
	if diff := cmp.Diff([]string{"connected", `after ""`, "connected", `after "1"`}, told); diff != "" {
		t.Error(diff)
	}
}

func TestWatchCatchesUpWhereEventsWereLost(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		streamOf(w, r, true, "id: 1\ndata: a\n\n", "event: dropped\ndata: {\"count\":3}\n\n", "id: 5\ndata: "+r.URL.RawQuery+"\n\n")
	})
	enough := errors.New("enough")
	var told []string
	err := c.Watch(t.Context(), Watcher{
		Kind: "job", ID: "7",
		CatchUp: func(context.Context) error { told = append(told, "catch up"); return nil },
		Event: func(e StreamEvent) error {
			told = append(told, string(e.Data))
			if e.ID == "5" {
				return enough
			}
			return nil
		},
	})
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"catch up", "a", "catch up", "id=7&kind=job"}, told); diff != "" {
		t.Error(diff)
	}
}

// deaf is a transport whose connections open and then say nothing.
type deaf struct{ connections int }

func (d *deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	d.connections++
	body, end := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = end.CloseWithError(context.Cause(r.Context())) })
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
}

func TestStreamThatFellSilentIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Config{URL: "http://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		transport := &deaf{}
		c.http.Transport = transport
		began, enough := time.Now(), errors.New("enough")
		err = c.Watch(t.Context(), Watcher{
			CatchUp: func(context.Context) error {
				if transport.connections > 1 {
					return enough
				}
				return nil
			},
			Event: func(StreamEvent) error { return nil },
		})
		if took := time.Since(began); !errors.Is(err, enough) || took != silence+firstReconnect {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestWatchEndsWhenItIsRefusedOrNeverConnected(t *testing.T) {
	nothing := Watcher{CatchUp: func(context.Context) error { return nil }, Event: func(StreamEvent) error { return nil }}
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"code":"unauthorized"}`)
	})
	if err := c.Watch(t.Context(), nothing); pawl.ErrorCode(err) != pawl.CodeUnauthorized {
		t.Errorf("refused: %v", err)
	}
	absent, err := New(Config{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := absent.Watch(t.Context(), nothing); pawl.ErrorCode(err) != pawl.CodeUnreachable {
		t.Errorf("absent: %v", err)
	}
}

func TestWatchEndsWithTheErrorOfItsWatcher(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { streamOf(w, r, true, "data: x\n\n") })
	enough := errors.New("enough")
	err := c.Watch(t.Context(), Watcher{CatchUp: func(context.Context) error { return nil }, Event: func(StreamEvent) error { return enough }})
	if !errors.Is(err, enough) {
		t.Errorf("event: %v", err)
	}
	err = c.Watch(t.Context(), Watcher{CatchUp: func(context.Context) error { return enough }, Event: func(StreamEvent) error { return nil }})
	if !errors.Is(err, enough) {
		t.Errorf("connected: %v", err)
	}
}
