package demo

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func silent(string, string) {}

// visitURL makes a request and returns the status and the body.
func visitURL(t *testing.T, method, url string, headers map[string]string, body string) (int, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	// Go would send some of these again by itself on a connection that it used
	// before.
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

func TestMarketTellsItsPagesFailsAsPlannedAndKeepsItsLimit(t *testing.T) {
	m, err := openMarket(t.Context(), time.Now(), silent)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	key := map[string]string{"X-Api-Key": marketKey}
	if status, _, _ := visitURL(t, http.MethodGet, m.url, nil, ""); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", status)
	}
	m.plan(map[int]fault{1: broken, 2: cut})
	if status, _, _ := visitURL(t, http.MethodGet, m.url+"?page=1", key, ""); status != http.StatusInternalServerError {
		t.Errorf("page 1 answered %d", status)
	}
	if _, _, err := visitURL(t, http.MethodGet, m.url+"?page=2", key, ""); err == nil {
		t.Error("page 2 was not cut off")
	}
	rows := 0
	for page := 1; page <= 8; page++ {
		_, text, err := visitURL(t, http.MethodGet, m.url+"?limit=100&page="+string(rune('0'+page)), key, "")
		var answer struct {
			Data    []price
			HasMore bool
		}
		if err != nil || json.Unmarshal(text, &answer) != nil || answer.HasMore != (page < 8) {
			t.Fatalf("page %d: %v, %s", page, err, text)
		}
		rows += len(answer.Data)
	}
	held, refused := m.holds()
	if rows != len(held)+1 || refused != 0 {
		t.Errorf("%d rows of %d, %d calls refused", rows, len(held), refused)
	}
	if status, _, _ := visitURL(t, http.MethodGet, m.url, key, ""); status != http.StatusTooManyRequests {
		t.Errorf("call %d in a period answered %d", marketLimit+1, status)
	}
	changed := m.change(time.Now())
	if rows, more := m.page(changed.UpdatedAt, 1, 100); len(rows) != 1 || more || rows[0] != changed {
		t.Errorf("since the change: %v, %v", rows, more)
	}
}

func TestRowsThatDifferAreFound(t *testing.T) {
	at := time.Date(2026, 1, 2, 21, 0, 0, 0, time.UTC)
	want := []price{{"A", "2026-01-02", quote{1.5}, at}, {"B", "2026-01-02", quote{2}, at}}
	a, b := tableRow{"A", "2026-01-02", "1.5", at}, tableRow{"B", "2026-01-02T00:00:00Z", "2", at}
	if err := compareRows(want, []tableRow{b, a}); err != nil {
		t.Error(err)
	}
	other, older := a, a
	other.Close, older.ChangedAt = "1.6", at.Add(-time.Hour)
	for name, rows := range map[string][]tableRow{
		"missing": {a}, "twice": {a, b, b}, "another price": {other, b}, "another time": {older, b},
		"too many": {a, b, {"C", "2026-01-02", "1", at}},
	} {
		if compareRows(want, rows) == nil {
			t.Errorf("%s was not found", name)
		}
	}
}

func TestLostOrderIsThereOnceAndFoundByItsKey(t *testing.T) {
	d, err := openDesk(t.Context(), silent)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	wish := d.book.make(small, "a lamp", true)
	d.book.make(large, "a boat", false)
	_, text, err := visitURL(t, http.MethodGet, d.url+"/wishes?size=small", nil, "")
	if err != nil || !strings.Contains(string(text), wish) || strings.Contains(string(text), "boat") {
		t.Errorf("the wishes are %s, %v", text, err)
	}
	if status, _, _ := visitURL(t, http.MethodGet, d.url+"/orders/k1", nil, ""); status != http.StatusNotFound {
		t.Errorf("before the order: %d", status)
	}
	key := map[string]string{"Idempotency-Key": "k1"}
	if _, _, err := visitURL(t, http.MethodPost, d.url+"/orders", key, `{"wish":"`+wish+`","thing":"a lamp"}`); err == nil {
		t.Error("the answer was not lost")
	}
	if status, _, _ := visitURL(t, http.MethodGet, d.url+"/orders/k1", nil, ""); status != http.StatusOK {
		t.Errorf("after the order: %d", status)
	}
	if orders, posts := d.book.placed(wish); len(orders) != 1 || posts != 1 || d.book.open(small) != 0 || d.book.open(large) != 1 {
		t.Errorf("%v, %d posts", orders, posts)
	}
}

func TestPoetWritesOnePoemForAKey(t *testing.T) {
	p, err := openPoet(t.Context(), silent)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	p.loseAnswers(1)
	key, run := map[string]string{"Idempotency-Key": "s:1"}, `{"input":{"topic":"rain"},"scheduledFor":"2026-01-02T09:00:00Z"}`
	if _, _, err := visitURL(t, http.MethodPost, p.url, key, run); err == nil {
		t.Error("the answer was not lost")
	}
	status, text, err := visitURL(t, http.MethodPost, p.url, key, run)
	if err != nil || status != http.StatusOK || !strings.Contains(string(text), "Of rain I sing") {
		t.Errorf("%d, %s, %v", status, text, err)
	}
	if asked, poems, lost := p.counts(); asked != 2 || poems != 1 || lost != 1 || p.asked("s:1") != 2 {
		t.Errorf("asked %d times for %d poems, %d lost", asked, poems, lost)
	}
}

// What the documentation shows is what runs: a text of an example that the demo
// changes must be in it.
func TestExampleWithoutTheTextToChangeIsAnError(t *testing.T) {
	if _, err := example(fstest.MapFS{"a.yaml": {Data: []byte("url: z")}}, "a.yaml", change{"url: x", "url: y"}); err == nil {
		t.Error("nobody noticed")
	}
}
