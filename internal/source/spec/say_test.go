package spec

import (
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/run"
)

func TestHostIsTheDomainOfTheURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://API.Example.com/v1":   "api.example.com",
		"https://example.com:443/":     "example.com",
		"http://example.com.:80/":      "example.com",
		"http://example.com:8080":      "example.com:8080",
		"http://[::1]:80/":             "[::1]",
		"http://[2001:DB8::1]:8080/":   "[2001:db8::1]:8080",
		"https://user:pass@example.co": "example.co",
		"::":                           "",
	} {
		if got := (Definition{URL: url}).Host(); got != want {
			t.Errorf("the host of %s is %q, want %q", url, got, want)
		}
	}
}

func TestPaginationIsTold(t *testing.T) {
	for want, d := range map[string]Definition{
		"none":        {},
		"page":        {OffsetPagination: &OffsetPagination{PageParam: "page"}},
		"offset":      {OffsetPagination: &OffsetPagination{OffsetParam: "from"}},
		"cursor":      {CursorPagination: &CursorPagination{}},
		"link header": {LinkPagination: &LinkPagination{Header: "Link"}},
		"next link":   {LinkPagination: &LinkPagination{NextPath: "next"}},
	} {
		if got := d.Pagination(); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
	}
	for name, rows := range map[string]bool{"offset": true, "skip": true, "start": true, "startAt": true, "page": false, "p": false} {
		if got := (OffsetPagination{PageParam: name}).CountsRows(); got != rows {
			t.Errorf("whether %s counts rows is %v", name, got)
		}
	}
	if got := (OffsetPagination{OffsetParam: "from"}).Param(); got != "from" {
		t.Errorf("the parameter is %q", got)
	}
}

// B-39, B-43: timeout and retry period are those of the source.
func TestTimeoutAndBudgetAreThoseOfTheDefinition(t *testing.T) {
	d := Definition{Execution: Execution{Timeout: 90, MaxRetries: 2, RetryResetPeriod: "6h"}}
	if d.Timeout() != 90*time.Second || d.Budget() != (run.Budget{MaxRetries: 2, Period: 6 * time.Hour}) {
		t.Errorf("they are %s, %+v", d.Timeout(), d.Budget())
	}
	if d := (Definition{}); d.Timeout() != 5*time.Minute || d.Budget() != run.DefaultBudget() {
		t.Errorf("without an execution they are %s, %+v", d.Timeout(), d.Budget())
	}
}
