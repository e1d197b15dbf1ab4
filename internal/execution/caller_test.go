package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/executor/runner"
	"github.com/pawlrun/pawl/internal/pgtest/search"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/grantstore"
)

// ring has the keys of a server, and keeps what the service logs.
type ring struct {
	mu   sync.Mutex
	keys map[string]string // by reference; guarded by mu
	log  strings.Builder   // guarded by mu
}

func (r *ring) resolve(ref string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if value := r.keys[ref]; value != "" {
		return value, nil
	}
	return "", errors.New("the environment variable is not set")
}

func (r *ring) set(ref, value string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys = map[string]string{}
	}
	r.keys[ref] = value
}

func (r *ring) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func (r *ring) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// account is that of the grant.
func (k *kit) account() (id string) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		g, err := grantstore.In(tx).GrantByID(ctx, k.grantID)
		id = g.AccountID
		return err
	})
	return id
}

// point names the key of the grant's account.
func (k *kit) point(ref string) {
	k.t.Helper()
	id := k.account()
	k.write(func(ctx context.Context, tx *store.Tx) error { return grantstore.In(tx).SetKeyRef(ctx, id, ref) })
}

// seen is the caller of the latest run that the executor was asked for.
func (k *kit) seen() runner.Caller {
	asked := k.fake.asked()
	return asked[len(asked)-1].Caller
}

// C-03, C-30, C-35, lesson 53: the grant has no key. Whatever its account names,
// and whatever that is, at the moment of a run is what the run gets.
func TestKeyIsThatOfTheMoment(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.mustRun("none")
		if c := k.seen(); c.AccountID != k.account() || !c.Key.IsZero() {
			t.Errorf("without a key: %s %v", c.AccountID, c.Key.IsZero())
		}
		step := 0
		expect := func(want string) {
			t.Helper()
			step++
			k.mustRun(fmt.Sprint("k", step))
			if got := k.seen().Key.Reveal(); got != want {
				t.Errorf("step %d: %q, want %q", step, got, want)
			}
		}
		k.keys.set("${A}", "first-key")
		k.keys.set("${B}", "other-key")
		k.point("${A}")
		expect("first-key")
		k.keys.set("${A}", "second-key")
		expect("second-key")
		k.point("${B}")
		expect("other-key")
		k.point("")
		expect("")
	})
}

// C-35, lesson 53: a later attempt and a take-over by another node have the key
// of their own moment, and so does who cancels.
func TestLaterAttemptsAndTakeOversResolveTheKeyAnew(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.point("${A}")
		k.keys.set("${A}", "first-key")
		k.fake.run = func(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
			return runner.Failure(runner.CodeInternal, "no"), nil
		}
		k.mustRun("k")
		k.keys.set("${A}", "second-key")
		k.fake.run = succeed
		again := k.request(`{"topic":"autumn"}`)
		again.Attempt = 2
		if answer, err := k.s.Run(t.Context(), "k", graph, again); err != nil || !answer.OK || k.seen().Key.Reveal() != "second-key" {
			t.Errorf("%+v %v %q", answer, err, k.seen().Key.Reveal())
		}

		k.fake.run = func(context.Context, runner.Run, func(runner.Event) error) (runner.Result, error) {
			return runner.Result{}, errors.New("the line to second-key is dead")
		}
		if _, err := k.run("dead"); err == nil || strings.Contains(fmt.Sprintf("%v %+v %v", err, err, errors.Unwrap(err)), "second-key") {
			t.Errorf("%v", err)
		}
		k.keys.set("${A}", "third-key")
		k.fake.run = succeed
		if answer, err := k.service("node-2").Run(t.Context(), "dead", graph, k.request(`{"topic":"autumn"}`)); err != nil || !answer.OK || k.seen().Key.Reveal() != "third-key" {
			t.Errorf("%+v %v %q", answer, err, k.seen().Key.Reveal())
		}

		entered := make(chan struct{})
		k.fake.run = func(ctx context.Context, _ runner.Run, _ func(runner.Event) error) (runner.Result, error) {
			close(entered)
			<-ctx.Done()
			return runner.Final(runner.CodeAborted, "stopped"), nil
		}
		stop := make(chan struct{})
		k.fake.cancel = func(r runner.Run) error {
			defer close(stop)
			if r.Caller.Key.Reveal() != "third-key" {
				t.Errorf("cancelled with %q", r.Caller.Key.Reveal())
			}
			return errors.New("third-key may not")
		}
		_ = begin(k, k.s, "slow")
		<-entered
		if err := k.s.Cancel(t.Context(), "slow"); err != nil {
			t.Error(err)
		}
		<-stop
		k.eventually("the refusal is logged", func() bool { return strings.Contains(k.keys.logged(), "could not be cancelled") })
		for _, key := range []string{"first-key", "second-key", "third-key"} {
			if strings.Contains(k.keys.logged(), key) {
				t.Errorf("%s is in the log: %s", key, k.keys.logged())
			}
		}
	})
}

// C-35: a key that is not there calls nobody and fails the attempt in words; it
// is tried again, and works when the key is there. What was begun before is
// found again.
func TestMissingKeyFailsTheAttemptAndHeals(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.point("${GONE}")
		answer := k.mustRun("k")
		want := "the key ${GONE} of billing account " + k.account() + " is not set on this server"
		if answer.OK || answer.ErrorCode != contract.Internal || !answer.Retry || answer.Unknown || !strings.HasPrefix(answer.ErrorMessage, want) || len(k.fake.asked()) != 0 {
			t.Fatalf("%+v, and %d calls", answer, len(k.fake.asked()))
		}
		if n := k.count(`select count(*) from charge_reservations`); n != 0 {
			t.Errorf("%d reservations are left", n)
		}
		k.keys.set("${GONE}", "line\nbreak")
		again := k.request(`{"topic":"autumn"}`)
		again.Attempt = 2
		answer, err := k.s.Run(t.Context(), "k", graph, again)
		if err != nil || answer.OK || !strings.Contains(answer.ErrorMessage, "cannot be used") || strings.Contains(answer.ErrorMessage, "break\n") || len(k.fake.asked()) != 0 {
			t.Errorf("%+v %v", answer, err)
		}
		k.keys.set("${GONE}", "found-key")
		again.Attempt = 3
		if answer, err := k.s.Run(t.Context(), "k", graph, again); err != nil || !answer.OK || k.seen().Key.Reveal() != "found-key" {
			t.Errorf("%+v %v", answer, err)
		}

		k.fake.run = func(_ context.Context, _ runner.Run, emit func(runner.Event) error) (runner.Result, error) {
			return runner.Result{}, errors.Join(emit(remote(`{"thread":7}`)), errors.New("the process dies"))
		}
		if _, err := k.run("begun"); err == nil {
			t.Fatal("it did not die")
		}
		k.keys.set("${GONE}", "")
		if answer := k.mustRun("begun"); answer.OK || !answer.Retry {
			t.Errorf("%+v", answer)
		}
		k.keys.set("${GONE}", "found-key")
		k.fake.run = succeed
		again.Attempt = 2
		if answer, err := k.s.Run(t.Context(), "begun", graph, again); err != nil || !answer.OK {
			t.Errorf("%+v %v", answer, err)
		}
		if asked := k.fake.asked(); string(asked[len(asked)-1].Remote) != `{"thread":7}` {
			t.Errorf("remembered %s", asked[len(asked)-1].Remote)
		}
	})
}

// C-30, C-35: a graph that says the key wherever it can brings it neither into
// the database, nor into an answer, nor into the log.
func TestKeyIsWrittenNowhere(t *testing.T) {
	const key = "vk-31415926"
	both(t, func(t *testing.T, k *kit) {
		k.point("${TEAM}")
		k.keys.set("${TEAM}", key)
		told := ""
		k.s.progress = func(_, text string) { told += text }
		text, _ := json.Marshal("I am " + key)
		for name, result := range map[string]runner.Result{
			"well": {OK: true, Output: text, TraceID: key}, "badly": runner.Failure(runner.CodeInternal, "no entry for "+key), "asks": {Interrupt: text},
		} {
			k.fake.run = func(_ context.Context, _ runner.Run, emit func(runner.Event) error) (runner.Result, error) {
				use := usage("unit of "+key, 5)
				use.Usage.Model = key
				return result, errors.Join(emit(use), emit(usage("", 1)), emit(runner.Progress("hello "+key)))
			}
			answer := k.mustRun(name)
			raw, err := json.Marshal(answer)
			if err != nil || strings.Contains(string(raw), key) || !strings.Contains(string(raw), "[secret TEAM]") {
				t.Errorf("%s: %s", name, raw)
			}
		}
		if places := search.Places(t, k.db, key); len(places) > 0 {
			t.Errorf("the key is in %v", places)
		}
		if places := search.Places(t, k.db, "[secret TEAM]"); len(places) < 4 {
			t.Errorf("the search finds only %v", places)
		}
		if strings.Contains(k.keys.logged()+told, key) || !strings.Contains(told, "hello [secret TEAM]") {
			t.Errorf("logged %s, told %s", k.keys.logged(), told)
		}
	})
}

// tap sees what goes over a wire.
type tap struct{ seen bytes.Buffer }

func (w *tap) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Write(&w.seen); err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	again.Body, _ = req.GetBody()
	resp, err := http.DefaultTransport.RoundTrip(again)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read
	w.seen.Write(raw)
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	return resp, err
}

// C-35: where the roles are split, the process that runs graphs resolves the key;
// it is neither in what a worker sends nor in what it hears.
func TestWorkerOverHTTPNeverSeesTheKey(t *testing.T) {
	const key = "vk-31415926"
	both(t, func(t *testing.T, k *kit) {
		k.point("${TEAM}")
		k.keys.set("${TEAM}", key)
		k.fake.run = func(_ context.Context, r runner.Run, _ func(runner.Event) error) (runner.Result, error) {
			return runner.Failure(runner.CodeInternal, "I know "+r.Caller.Key.Reveal()), nil
		}
		wire := &tap{}
		r, err := NewRemote(serve(t, k).URL, token, &http.Client{Transport: wire})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := r.Run(t.Context(), "k", graph, k.request(`{}`))
		if err != nil || answer.ErrorMessage != "I know [secret TEAM]" || k.seen().Key.Reveal() != key {
			t.Errorf("%+v %v", answer, err)
		}
		if seen := wire.seen.String(); strings.Contains(seen, key) || !strings.Contains(seen, "[secret TEAM]") || !strings.Contains(seen, "POST ") {
			t.Errorf("over the wire went %s", seen)
		}
	})
}
