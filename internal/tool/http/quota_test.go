package httptool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/quota"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// ledger is a book of calls that answers as it is told and remembers what it
// was asked.
type ledger struct {
	asked   []string
	learned []string
	says    error
	deaf    error // of Learn
}

func (l *ledger) Acquire(_ context.Context, domain string) error {
	l.asked = append(l.asked, domain)
	return l.says
}

func (l *ledger) Learn(_ context.Context, domain string, status int, h http.Header) error {
	l.learned = append(l.learned, fmt.Sprintf("%s %d %s", domain, status, h.Get("Retry-After")))
	return l.deaf
}

// booked makes a connection whose calls are booked.
func booked(t *testing.T, u *upstream, book connector.Quota) *Service {
	t.Helper()
	s := connect(t, u.URL, "reconcile: {post: {get: '/orders/{idempotencyKey}'}}\n")
	s.quota = book
	return s
}

// every request is booked before it is made, under the domain of the
// service, and the book learns from every answer.
func TestCallsAreBooked(t *testing.T) {
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.Header().Set("Retry-After", "9")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	book := &ledger{deaf: errors.New("the disk is full")}
	s := booked(t, u, book)
	do(t, s, "get", object{"path": "/a"})
	if e := fail(t, s, "post", object{"path": "/b", "body": object{}}); e.Code != "rate_limited" || e.RetryAfter != 9*time.Second {
		t.Errorf("the service's own refusal is %+v", e)
	}
	if _, err := s.Reconcile(t.Context(), callOf(t, "post", object{"path": "/b"})); err != nil {
		t.Error(err)
	}
	if _, err := s.Test(t.Context()); err != nil {
		t.Error(err)
	}
	domain := strings.TrimPrefix(u.URL, "http://")
	if got, want := strings.Join(book.asked, " "), strings.TrimSpace(strings.Repeat(domain+" ", 4)); got != want {
		t.Errorf("booked %s, want %s", got, want)
	}
	want := fmt.Sprintf("%[1]s 200 ,%[1]s 429 9,%[1]s 200 ,%[1]s 200 ", domain)
	if got := strings.Join(book.learned, ","); got != want {
		t.Errorf("learned %q, want %q", got, want)
	}
}

// a denial is transient, says how long to wait, and nothing was sent; a
// book that cannot be asked allows nothing.
func TestDeniedCallsAreNotMade(t *testing.T) {
	u := serve(t, func(http.ResponseWriter, *http.Request) {})
	book := &ledger{says: fmt.Errorf("book: %w", &quota.Denied{Domain: "shop.example", Until: time.Now().Add(time.Minute)})}
	s := booked(t, u, book)
	for _, method := range []string{"get", "post"} {
		e := fail(t, s, method, object{"path": "/b"})
		if e.Class != pawl.ClassTransient || e.Code != "rate_limited" || !e.NotApplied || !e.NotSent || e.RetryAfter.Round(time.Minute) != time.Minute {
			t.Errorf("%s is denied by %+v", method, e)
		}
	}
	_, err := s.Reconcile(t.Context(), callOf(t, "post", object{"path": "/b"}))
	if e := own(t, err); e.NotApplied || e.Code != "rate_limited" {
		t.Errorf("a denied question says %+v about the mutation", e)
	}
	book.says = &quota.Denied{Until: time.Now().Add(-time.Minute)}
	if e := fail(t, s, "get", object{"path": "/b"}); e.RetryAfter != 0 {
		t.Errorf("a wait of %v", e.RetryAfter)
	}
	book.says = errors.New("the database is away")
	if e := fail(t, s, "post", object{"path": "/b", "body": object{}}); e.Class != pawl.ClassTransient || e.Code != "unbooked" || !e.NotApplied || !e.NotSent {
		t.Errorf("without a book: %+v", e)
	}
	if n := len(u.requests()); n > 0 || len(book.learned) > 0 {
		t.Errorf("%d requests were made, and %v learned", n, book.learned)
	}
}

// The book comes from the settings; without one there are no limits.
func TestBookComesFromTheSettings(t *testing.T) {
	book := &ledger{}
	s := settingsOf(t, connector.Env{Getenv: environment, HTTP: client(t), Quota: book}, "baseUrl: https://shop.example\n")
	connection, ok := New(s)
	if !ok || connection.(*Service).quota != connector.Quota(book) {
		t.Errorf("the book of the settings is not used: %v", s.Fields())
	}
}
