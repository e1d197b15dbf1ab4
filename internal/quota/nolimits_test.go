package quota

import (
	"net/http"
	"testing"
)

// What is tried out without a database has no limit.
func TestUnbookedCountsNothing(t *testing.T) {
	p := &Providers{byDomain: map[string]Provider{"api.example": {Domain: "api.example", Limit: 1}}}
	u := NewNoLimits(p, nil, nil)
	for range 3 {
		if err := u.Acquire(t.Context(), "api.example"); err != nil {
			t.Fatal(err)
		}
		if err := u.Learn(t.Context(), "api.example", http.StatusTooManyRequests, http.Header{"Retry-After": {"60"}}); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://other.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Authorize(t.Context(), req); err != nil || len(req.Header) != 0 {
		t.Errorf("%v, %v", err, req.Header)
	}
	u.Rejected(req)
}
