package server

import (
	"net/http"
	"time"
)

const (
	// writePatience is how long a client may refuse to read.
	writePatience = 30 * time.Second
	// writeChunk is how much it must read in that time.
	writeChunk = 64 << 10
)

// patient lets no client hold an answer for longer than it may refuse to read:
// every write has a deadline, that of a stream too.
func patient(next http.Handler, patience time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
		next.ServeHTTP(out, r)
		out.extend() // for what is left in the buffers
	})
}

type patientWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

func (w *patientWriter) extend() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience)) // where there is a connection
}

func (w *patientWriter) WriteHeader(status int) {
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
