package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/pawlrun/pawl/internal/outbound"
)

// Calls to private addresses are refused, unless the operator allows them.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") }))
	defer server.Close()

	private, err := outbound.ParsePrefixes([]string{"127.0.0.0/8"})
	if err != nil {
		panic(err)
	}
	for _, cfg := range []outbound.Config{{}, {AllowPrivate: private}} {
		client, err := outbound.New(cfg)
		if err != nil {
			panic(err)
		}
		ctx := context.Background()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			panic(err)
		}
		resp, err := client.Do(ctx, req) //nolint:bodyclose // ReadBody does
		if err != nil {
			refused, _ := errors.AsType[*outbound.Error](err)
			fmt.Println(refused.Kind, "maybe sent:", refused.MaybeSent)
			continue
		}
		body, err := outbound.ReadBody(resp, 1<<10)
		fmt.Println(string(body), err)
	}
	// Output:
	// blocked maybe sent: false
	// hello <nil>
}
