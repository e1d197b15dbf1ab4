package outbound

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pawlrun/pawl"
)

func TestReadBodyStopsAtTheLimit(t *testing.T) {
	const size = 1000
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/chunked" {
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	})
	c := newTestClient(t, Config{}, "127.0.0.1")
	for _, path := range []string{"/", "/chunked"} {
		for limit, fits := range map[int64]bool{0: false, 1: false, size - 1: false, size: true, size + 1: true, math.MaxInt64: true} {
			resp, err := c.Do(t.Context(), newRequest(t, "GET", s.URL+path, ""))
			if err != nil {
				t.Fatal(err)
			}
			body, err := ReadBody(resp, limit)
			_ = resp.Body.Close()
			if fits {
				if err != nil || len(body) != size {
					t.Errorf("%s, limit %d: %d bytes, %v", path, limit, len(body), err)
				}
				continue
			}
			e := mustFail(t, err, KindTooLarge)
			if e.Class != pawl.ClassLogic || e.Hint == "" || !strings.Contains(e.Error(), fmt.Sprintf("more than %d bytes", limit)) {
				t.Errorf("%s, limit %d: class %s, message %q", path, limit, e.Class, e)
			}
		}
	}
}

func TestClientReadBodyUsesItsOwnLimit(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "12345") })
	_, err := call(t, newTestClient(t, Config{MaxBody: 4}, "127.0.0.1"), newRequest(t, "GET", s.URL, ""))
	wantKind(t, err, KindTooLarge)
	got, err := call(t, newTestClient(t, Config{MaxBody: 5}, "127.0.0.1"), newRequest(t, "GET", s.URL, ""))
	if err != nil || got.body != "12345" {
		t.Errorf("got %q, %v", got.body, err)
	}
}

// What is known about a mutation is lost with its answer: context 3.5, 6 and 7.
func TestTooLargeAnswerOfAMutationIsUnknown(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "12345") })
	_, err := call(t, newTestClient(t, Config{MaxBody: 4}, "127.0.0.1"), newRequest(t, "POST", s.URL, ""))
	if e := mustFail(t, err, KindTooLarge); e.Verdict(Mutation).Happened != Unknown || e.Class != pawl.ClassIndeterminate {
		t.Errorf("verdict %v", e.Verdict(Mutation))
	}
}

// HEAD announces the length of a body that it does not have.
func TestReadBodyOfHeadIsEmpty(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "99999") })
	got, err := call(t, newTestClient(t, Config{MaxBody: 10}, "127.0.0.1"), newRequest(t, "HEAD", s.URL, ""))
	if err != nil || got.body != "" {
		t.Errorf("got %q, %v", got.body, err)
	}
}

func TestLimitCountsDecompressedBytes(t *testing.T) {
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	_, _ = zip.Write(make([]byte, 4<<20))
	_ = zip.Close()
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	const limit = 1 << 16
	if bomb.Len() > limit {
		t.Fatalf("the bomb has %d bytes", bomb.Len())
	}
	c := newTestClient(t, Config{MaxBody: limit}, "127.0.0.1")
	for _, coding := range []string{"", "gzip", "gzip, br"} { // also when the caller asks for it
		req := newRequest(t, "GET", s.URL, "")
		if coding != "" {
			req.Header.Set("Accept-Encoding", coding)
		}
		got, err := call(t, c, req)
		wantKind(t, err, KindTooLarge)
		if len(got.body) > limit {
			t.Errorf("read %d bytes", len(got.body))
		}
	}
}

func TestLimitBodyStreamsWhatFits(t *testing.T) {
	for _, slow := range []bool{false, true} {
		for n := range 8 {
			var src io.Reader = strings.NewReader("12345")
			if slow {
				src = iotest.OneByteReader(src)
			}
			resp := &http.Response{StatusCode: 200, Body: io.NopCloser(src)}
			limited := LimitBody(resp, int64(n))
			got, err := io.ReadAll(limited)
			if want := "12345"[:min(n, 5)]; string(got) != want {
				t.Errorf("limit %d: got %q, want %q", n, got, want)
			}
			if n >= 5 {
				if err != nil {
					t.Errorf("limit %d: %v", n, err)
				}
				continue
			}
			wantKind(t, err, KindTooLarge)
			if _, err := limited.Read(make([]byte, 1)); err == nil {
				t.Errorf("limit %d: the error does not stay", n)
			}
		}
	}
}
