package telemetry

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// What others send is hostile: only what can be read is kept, in our own spelling.
func TestTraceparentsAreReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		good:                                   good,
		strings.Replace(good, "-01", "-00", 1): strings.Replace(good, "-01", "-00", 1),
		strings.Replace(good, "-01", "-ff", 1): good, // flags that we do not know are not passed on
		"cc" + good[2:]:                        good,
		"cc" + good[2:] + "-what-comes":        good,
		good + "-more":                         "",
		"ff" + good[2:]:                        "",
		"":                                     "",
		"00":                                   "",
		strings.ToUpper(good):                  "",
		good[:54]:                              "",
		good + " ":                             "",
		good + "\r\nX-Evil: 1":                 "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": "",
		"00-4bf92f3577b34da6a3ce929d0e0e473z-00f067aa0ba902b7-01": "",
		"zz" + good[2:]: "",
		"cc" + good[2:] + strings.Repeat("-x", 1000): "",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q is kept as %q, want %q", text, got, want)
		}
	}
}

func TestTracesArePassedOn(t *testing.T) {
	h := http.Header{}
	Pass(context.Background(), h)
	if len(h) != 0 {
		t.Errorf("without a trace: %v", h)
	}
	ctx := With(context.Background(), good)
	Pass(ctx, h)
	if h.Get("traceparent") != good {
		t.Errorf("passed on %v", h)
	}
	own := http.Header{}
	own.Set("traceparent", "mine")
	Pass(ctx, own)
	if own.Get("traceparent") != "mine" {
		t.Errorf("what the caller said became %v", own)
	}
	if With(context.Background(), "nonsense") != context.Background() {
		t.Error("nonsense became a trace")
	}
}
