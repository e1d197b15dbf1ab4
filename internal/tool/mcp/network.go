package mcp

import (
	"errors"
	"io"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawlrun/pawl/internal/outbound"
)

// network makes the requests of the SDK with the guarded client, which also
// deals with redirects and sends no POST twice.
type network struct {
	client  *outbound.Client
	headers http.Header // of the operator
}

// networkTransport is the transport of the SDK to a server on the network.
func networkTransport(cfg config, client *outbound.Client) sdk.Transport {
	return &sdk.StreamableClientTransport{
		Endpoint: cfg.url,
		HTTPClient: &http.Client{
			Transport:     &network{client: client, headers: cfg.headers},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		MaxEventSize:         largestMessage,
		DisableStandaloneSSE: true, // some servers do not begin the answer before there is something to tell
	}
}

// RoundTrip makes one request and reports to its trip.
func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	var notes *trip
	if t := tripOf(ctx); req.Method == http.MethodPost && t.begin() {
		notes = t
	}
	req = req.Clone(ctx)
	for name, values := range n.headers {
		if _, taken := req.Header[name]; !taken { // the protocol's own headers win
			req.Header[name] = values
		}
	}
	resp, err := n.client.Do(ctx, req)
	if err != nil {
		if failure, ok := errors.AsType[*outbound.Error](err); ok && notes != nil {
			notes.failed(failure)
		}
		return nil, err
	}
	if notes != nil {
		notes.answered(resp)
	}
	if req.Method == http.MethodPost { // others are streams without an end
		limitAnswer(resp, notes)
	}
	return resp, nil
}

// limitAnswer makes reading fail past the largest message.
func limitAnswer(resp *http.Response, notes *trip) {
	whole := *resp
	resp.Body = &limitedAnswer{Closer: resp.Body, body: outbound.LimitBody(&whole, largestMessage), notes: notes}
}

type limitedAnswer struct {
	io.Closer
	body  io.Reader
	notes *trip // can be nil
}

func (a *limitedAnswer) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if failure, ok := errors.AsType[*outbound.Error](err); ok && a.notes != nil && failure.Kind == outbound.KindTooLarge {
		a.notes.failed(failure)
	}
	return n, err
}
