package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// writePatience is how long a client may refuse to read.
	writePatience = 30 * time.Second
	// writeChunk is how much it must read in that time.
	writeChunk = 64 << 10
	// hearOut is how much is read of a body that is refused as too large, and
	// hearOutPatience for how long.
	hearOut         = 32 << 20
	hearOutPatience = 5 * time.Second
)

// patient lets no client hold an answer for longer than it may refuse to read:
// every write has a deadline, that of a stream too.
func patient(next http.Handler, patience time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
		if r.Header.Get("Expect") == "" { // whoever asks first has sent nothing yet
			out.body = r.Body
		}
		next.ServeHTTP(out, r)
		out.extend() // for what is left in the buffers
	})
}

type patientWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	body     io.Reader // what the client sends; nil if it need not be heard out
}

func (w *patientWriter) extend() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience)) // where there is a connection
}

// WriteHeader hears a client out whose body is too large: most read the answer only
// when they have sent everything, and would see a broken connection instead.
func (w *patientWriter) WriteHeader(status int) {
	if status == http.StatusRequestEntityTooLarge && w.body != nil {
		_ = w.control.SetReadDeadline(time.Now().Add(hearOutPatience))               // where there is a connection
		if _, err := io.CopyN(io.Discard, w.body, hearOut); errors.Is(err, io.EOF) { // else nothing more is read of it
			_ = w.control.SetReadDeadline(time.Time{})
		}
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *patientWriter) Write(b []byte) (n int, err error) {
	for {
		part := b[n:min(len(b), n+writeChunk)]
		w.extend()
		written, err := w.ResponseWriter.Write(part)
		if n += written; err != nil || n == len(b) {
			return n, err
		}
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
