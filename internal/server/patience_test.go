package server

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A client that does not read is left, whatever it was to be sent, and one that
// reads slowly is not.
func TestAClientThatDoesNotReadIsLeft(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter) error{
		"at once": func(w http.ResponseWriter) error {
			_, err := w.Write(make([]byte, 64<<20))
			return err
		},
		"in a stream": func(w http.ResponseWriter) error {
			for range 64 << 10 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return err
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			server := httptest.NewServer(patient(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { ended <- write(w) }), 200*time.Millisecond))
			defer server.Close()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // it was refused
			if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReaderSize(conn, 16).ReadByte(); err != nil { // and nothing more
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				if err == nil {
					t.Error("all of it was written, although nobody read")
				}
			case <-time.After(30 * time.Second):
				t.Fatal("the handler still waits for its client")
			}
		})
	}
}

// Most clients read the answer when they have sent everything: one that sends too much is
// heard out, or it would be told of a broken connection.
func TestAClientThatSendsTooMuchIsToldSo(t *testing.T) {
	server := httptest.NewServer(patient(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 100)
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}), time.Minute))
	defer server.Close()
	const size = 20 << 20
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only read from
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size); err != nil {
		t.Fatal(err)
	}
	for sent := 0; sent < size; sent += 1 << 20 {
		if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
			t.Fatalf("after %d bytes: %v", sent, err)
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is empty
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("answered %s", answer.Status)
	}
}

// One that sends too much and then nothing holds its connection only for as long as it is
// heard out.
func TestAClientThatStallsIsNotHeardOutForEver(t *testing.T) {
	server := httptest.NewServer(patient(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) }), time.Minute))
	defer server.CloseClientConnections()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only read from
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(hearOutPatience + 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // until the server closes it
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 413 ") {
		t.Errorf("answered %q, %v", answer, err)
	}
}

// deadlines notes that a write got one.
type deadlines struct {
	*httptest.ResponseRecorder
	set bool
}

func (d *deadlines) SetWriteDeadline(time.Time) error {
	d.set = true
	return nil
}

func TestTheServerIsPatientWithItsClients(t *testing.T) {
	cfg := Default()
	cfg.Addr, cfg.Data = "127.0.0.1:0", t.TempDir()
	cfg.Database, cfg.Logs = "sqlite:"+filepath.Join(cfg.Data, "pawl.db"), io.Discard
	s := &server{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	defer s.close()
	if err := s.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/signin", "/api/v1/jobs"} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		req.Header.Set("Accept", "text/html")
		s.http.Handler.ServeHTTP(w, req)
		if !w.set {
			t.Errorf("%s is written without a deadline", path)
		}
	}
}
