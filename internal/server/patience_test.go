package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
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
			conn, err := net.Dial("tcp", server.Listener.Addr().String()) //nolint:noctx // it must not end before the server does
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
