package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/billing"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
	"github.com/pawlrun/pawl/internal/telemetry"
)

const token = "service-token"

func serve(t *testing.T, k *kit) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(k.s.Handler(token))
	t.Cleanup(server.Close)
	return server
}

// call is a request as a test writes it: the absent parts are left out.
type call struct {
	path, auth, key, body string
}

func (c call) do(t *testing.T, server *httptest.Server) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.auth != "" {
		req.Header.Set("Authorization", c.auth)
	}
	if c.key != "" {
		req.Header.Set("Idempotency-Key", c.key)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	_ = json.Unmarshal(raw, &answer) // what is not JSON has no fields
	return resp.StatusCode, answer
}

// Context 3.17.1, 3.17.2, C-42: every check comes before the next one, and what
// comes later may be wrong too.
func TestHandlerChecksInOrder(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		server := serve(t, k)
		good := fmt.Sprintf(`{"executionGrantId":%q,"input":{"a":1}}`, k.grantID)
		other := fmt.Sprintf(`{"executionGrantId":%q,"input":{"a":2}}`, k.grantID)
		const runs, bearer = "/api/internal/graphs/x:poet/runs", "Bearer " + token
		for _, c := range []struct {
			name   string
			call   call
			status int
			code   string
		}{
			{"no token, and everything else wrong", call{"/api/internal/graphs/poet/runs", "", "", "{"}, 401, "unauthorized"},
			{"wrong token", call{runs, "Bearer other", "k", good}, 401, "unauthorized"},
			{"another scheme", call{runs, "Basic " + token, "k", good}, 401, "unauthorized"},
			{"no token on an unknown path", call{"/api/internal/else", "", "", ""}, 401, "unauthorized"},
			{"graph id without provider, no key, bad body", call{"/api/internal/graphs/poet/runs", bearer, "", "{"}, 404, "not_found"},
			{"graph id with a star", call{"/api/internal/graphs/x:*/runs", bearer, "k", good}, 404, "not_found"},
			{"graph id with a slash", call{"/api/internal/graphs/x:a%2Fb/runs", bearer, "k", good}, 404, "not_found"},
			{"no :run", call{"/api/internal/graphs/x:poet", bearer, "k", good}, 404, "not_found"},
			{"no key, bad body", call{runs, bearer, "", "{"}, 400, "invalid_request"},
			{"long key", call{runs, bearer, strings.Repeat("k", 256), good}, 400, "invalid_request"},
			{"not JSON", call{runs, bearer, "k", "{"}, 400, "invalid_request"},
			{"two values", call{runs, bearer, "k", good + good}, 400, "invalid_request"},
			{"no grant", call{runs, bearer, "k", `{"input":1}`}, 400, "invalid_request"},
			{"no input", call{runs, bearer, "k", `{"executionGrantId":"g"}`}, 400, "invalid_request"},
			{"unknown grant", call{runs, bearer, "k", `{"executionGrantId":"g","input":1}`}, 403, "grant_not_found"},
			{"another graph", call{"/api/internal/graphs/x:prose/runs", bearer, "k", good}, 403, "grant_scope"},
			{"good", call{runs, bearer, "k", good}, 200, ""},
			{"good again, spelled otherwise", call{"/api/internal/graphs/x%3Apoet:run", "bearer " + token, "k", " " + good}, 200, ""},
			{"other input under the key, before the grant is asked", call{runs, bearer, "k", `{"executionGrantId":"g","input":1}`}, 422, "idempotency_mismatch"},
			{"other input under the key", call{runs, bearer, "k", other}, 422, "idempotency_mismatch"},
		} {
			status, answer := c.call.do(t, server)
			if status != c.status {
				t.Errorf("%s: %d %v", c.name, status, answer)
				continue
			}
			if c.code != "" && answer["code"] != c.code {
				t.Errorf("%s: %v", c.name, answer)
			}
			if c.status == 200 && (answer["ok"] != true || answer["runId"] == "" || answer["traceId"] != "trace" || answer["errorCode"] != "") {
				t.Errorf("%s: %v", c.name, answer)
			}
		}
		if n := len(k.fake.asked()); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

// Context 3.17.1: the header has at most 512 and the token at most 256
// characters; an empty token is nobody's.
func TestServiceTokenIsComparedWhole(t *testing.T) {
	long, tooLong := strings.Repeat("t", 256), strings.Repeat("t", 257)
	for _, c := range []struct {
		name    string
		headers []string
		token   string
		want    bool
	}{
		{"right", []string{"Bearer " + token}, token, true},
		{"longest", []string{"Bearer " + long}, long, true},
		{"too long for a token", []string{"Bearer " + tooLong}, tooLong, false},
		{"too long for a header", []string{"Bearer " + strings.Repeat(" ", 512) + token}, token, false},
		{"a part", []string{"Bearer " + token[:5]}, token, false},
		{"more", []string{"Bearer " + token + "x"}, token, false},
		{"none", nil, token, false},
		{"empty", []string{"Bearer "}, "", false},
		{"no scheme", []string{token}, token, false},
		{"twice", []string{"Bearer " + token, "Bearer " + token}, token, false},
	} {
		if got := authentic(c.headers, c.token); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// What a graph calls is a part of the trace of whoever asked for the run, from another
// process or from this one, although the run outlives its caller.
func TestARunIsInTheTraceOfItsCaller(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	both(t, func(t *testing.T, k *kit) {
		told := make(chan string, 1)
		run := k.fake.run
		k.fake.run = func(ctx context.Context, r runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			h := http.Header{}
			telemetry.Pass(ctx, h)
			told <- h.Get(telemetry.Header)
			return run(ctx, r, emit)
		}
		r, err := NewRemote(serve(t, k).URL, token, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx := telemetry.With(t.Context(), "00-"+trace+"-00f067aa0ba902b7-01")
		for key, of := range map[string]API{"far": r, "near": k.s} {
			if _, err := of.Run(ctx, key, graph, k.request(`1`)); err != nil {
				t.Fatal(err)
			}
			if got := <-told; !strings.Contains(got, trace) {
				t.Errorf("%s: the graph is told %q", key, got)
			}
		}
		if _, err := r.Run(t.Context(), "none", graph, k.request(`1`)); err != nil {
			t.Fatal(err)
		}
		if got := <-told; got != "" {
			t.Errorf("without a trace the graph is told %q", got)
		}
	})
}

// Lessons 55 and 57: over HTTP the answers and errors are those of the service.
func TestRemoteIsTheService(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		server := serve(t, k)
		r, err := NewRemote(server.URL+"/", token, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := r.Run(t.Context(), "k", graph, k.request(`{"a":1}`))
		if err != nil || !answer.OK || answer.TraceID != "trace" || answer.CostUSD == nil {
			t.Fatalf("%+v %v", answer, err)
		}
		if again, err := r.Outcome(t.Context(), "k"); err != nil || again.RunID != answer.RunID {
			t.Errorf("%+v %v", again, err)
		}
		if err := r.Cancel(t.Context(), "k"); err != nil {
			t.Errorf("cancel of what is over: %v", err)
		}
		k.fake.run = asks
		if answer, err := r.Run(t.Context(), "asks", graph, k.request(`1`)); err != nil || string(answer.Interrupt) != `{"ask":"sure?"}` {
			t.Errorf("%+v %v", answer, err)
		}
		if answer, err := r.Resume(t.Context(), "asks", "", []byte(`"yes"`)); err != nil || string(answer.Output) != `"yes"` {
			t.Errorf("%+v %v", answer, err)
		}
		none := int64(0)
		broke, spent := k.grant(grant.Caps{RunsPerDay: &none}, graph), k.grant(grant.Caps{RunsPerDay: new(int64(1))}, graph)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			return grantstore.In(tx).SetTimezone(ctx, spent.BillingAccountID, "Asia/Kathmandu")
		})
		if _, err := k.s.Run(t.Context(), "first", graph, contract.RunRequestV1{ExecutionGrantID: spent.ID, Input: json.RawMessage(`1`)}); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			key, graph string
			req        contract.RunRequestV1
		}{
			"mismatch": {"k", graph, k.request(`{"a":2}`)},
			"graph":    {"n", "nope", k.request(`1`)},
			"key":      {"", graph, k.request(`1`)},
			"body":     {"n", graph, contract.RunRequestV1{Input: json.RawMessage(`1`)}},
			"grant":    {"n", graph, contract.RunRequestV1{ExecutionGrantID: "g", Input: json.RawMessage(`1`)}},
			"credits":  {"n", graph, contract.RunRequestV1{ExecutionGrantID: broke.ID, Input: json.RawMessage(`1`)}},
			"day":      {"n", graph, contract.RunRequestV1{ExecutionGrantID: spent.ID, Input: json.RawMessage(`1`)}},
		} {
			_, near := k.s.Run(t.Context(), c.key, c.graph, c.req)
			_, far := r.Run(t.Context(), c.key, c.graph, c.req)
			a, _ := errors.AsType[*pawl.Error](near)
			b, ok := errors.AsType[*pawl.Error](far)
			if !ok || a.Code != b.Code || a.Reason != b.Reason || a.Msg != b.Msg || len(a.Fields) != len(b.Fields) || contract.CodeOf(near) != contract.CodeOf(far) {
				t.Errorf("%s: near %v, far %v", name, near, far)
			}
			e, ok := errors.AsType[*billing.CapError](far)
			if (name == "credits" || name == "day") != ok || ok && e.Which != billing.CapRunsPerDay {
				t.Errorf("%s: %v", name, far)
			}
			if ok && (name == "day") == e.Until.IsZero() || name == "day" && e.Until.Location().String() != "Asia/Kathmandu" {
				t.Errorf("%s: until %s", name, e.Until)
			}
		}
	})
}

// A caller over HTTP that leaves does not stop the run, and hears 409 with the
// run until it is over.
func TestRemoteCallerMayLeave(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		started, release := make(chan struct{}), make(chan struct{})
		k.fake.run = func(ctx context.Context, run runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			close(started)
			<-release
			return succeed(ctx, run, emit)
		}
		r, err := NewRemote(serve(t, k).URL, token, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := r.Run(ctx, "k", graph, k.request(`1`))
			gone <- err
		}()
		<-started
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		_, err = r.Run(t.Context(), "k", graph, k.request(`1`))
		if busy, ok := errors.AsType[*InProgressError](err); !ok || busy.RunID == "" || busy.RunID != k.fake.asked()[0].RunID {
			t.Errorf("%v", err)
		}
		close(release)
		k.eventually("there is an outcome", func() bool {
			answer, err := r.Run(t.Context(), "k", graph, k.request(`1`))
			return err == nil && answer.OK
		})
	})
}

// A service that is not there is not a run that failed.
func TestRemoteTellsAnAbsentService(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	r, err := NewRemote(address, token, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := contract.RunRequestV1{ExecutionGrantID: "g", Input: json.RawMessage(`1`)}
	if _, err := r.Run(t.Context(), "k", graph, req); pawl.ErrorCode(err) != pawl.CodeUnavailable {
		t.Errorf("somebody else's 404: %v", err)
	}
	server.Close()
	if _, err := r.Run(t.Context(), "k", graph, req); pawl.ErrorCode(err) != pawl.CodeUnreachable || strings.Contains(err.Error(), token) {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "ftp://x", "/path", "http://"} {
		if _, err := NewRemote(bad, token, nil); err == nil {
			t.Errorf("%q is an address", bad)
		}
	}
}
