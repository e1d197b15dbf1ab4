package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/hookstore"
	"slices"
)

func TestADeliveryBecomesAnEvent(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		w := k.expect("a delivery", http.StatusAccepted, request("d1", opened))
		var told client.Received
		if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || told.DeliveryID != "d1" || told.Outcome != hookstore.Delivered || told.ID == "" || told.Known {
			t.Errorf("the sender is told %s", w.Body)
		}
		k.expect("the same again", http.StatusOK, request("d1", opened))
		list := k.effects()
		if len(list) != 1 || list[0].Key != "hook/github/d1" || list[0].Lane != "issue.opened" || string(list[0].Payload) != opened {
			t.Errorf("it became %+v", list)
		}
		d := k.one(hookstore.Delivered)
		if d.DeliveryID != "d1" || d.Effect != "published issue.opened to triage" || d.Attempts != 1 || d.Effects != 1 || d.Bytes != int64(len(opened)) {
			t.Errorf("it is kept as %+v", d)
		}
		if len(d.Headers) != 3 || d.Headers["X-Github-Event"] != "issues" {
			t.Errorf("the headers are %v", d.Headers)
		}
	})
}

// What a delivery becomes is a part of the trace of its sender, later as well.
func TestADeliveryIsInTheTraceOfItsSender(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		for i, parent := range []string{trace, "00-nonsense", ""} {
			r := request(fmt.Sprint("d", i), opened)
			r.Header.Set("Traceparent", parent)
			k.expect("a delivery", http.StatusAccepted, r)
		}
		var got []string
		for _, job := range k.effects() {
			got = append(got, job.Trace)
		}
		if want := []string{trace, "", ""}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		for _, d := range k.deliveries("github", hookstore.Delivered) {
			if d.Headers["Traceparent"] == trace {
				if _, err := k.redeliver(fmt.Sprint(d.ID)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if list := k.effects(); len(list) != 4 || list[3].Trace != trace {
			t.Errorf("delivered again it became %+v", list)
		}
	})
}

func TestStatuses(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github + "maxBytes: 100\n")
		k.expect("a name that nobody has", http.StatusNotFound, signed(httptest.NewRequest(http.MethodPost, "/hooks/gitlab", strings.NewReader(opened)), secret, opened))
		k.expect("a path below", http.StatusNotFound, httptest.NewRequest(http.MethodPost, "/hooks/github/x", nil))
		k.expect("no name", http.StatusNotFound, httptest.NewRequest(http.MethodPost, "/hooks/", nil))
		k.expect("a GET", http.StatusMethodNotAllowed, httptest.NewRequest(http.MethodGet, "/hooks/github", nil))
		k.expect("no signature", http.StatusUnauthorized, httptest.NewRequest(http.MethodPost, "/hooks/github", strings.NewReader(opened)))
		k.expect("a forged one", http.StatusUnauthorized, signed(request("d1", opened), "guess", opened))
		k.expect("another body", http.StatusUnauthorized, signed(request("d1", opened), secret, opened+" "))
		large := `{"x":"` + strings.Repeat("x", 100) + `"}`
		k.expect("a large one", http.StatusRequestEntityTooLarge, request("d1", large))
		chunked := request("d1", large)
		chunked.ContentLength = -1
		k.expect("a large one of unknown length", http.StatusRequestEntityTooLarge, chunked)
		for _, bad := range []string{`{"action":`, "nothing", "{}{}", "{\"a\":\"\xff\"}"} {
			k.expect("no JSON", http.StatusUnprocessableEntity, request("d1", bad))
		}
		k.expect("no id", http.StatusUnprocessableEntity, request("", opened))
		k.expect("a long id", http.StatusUnprocessableEntity, request(strings.Repeat("x", 257), opened))
		twice := request("d1", opened)
		twice.Header.Add("X-GitHub-Delivery", "d2")
		k.expect("two ids", http.StatusUnprocessableEntity, twice)

		if list := k.effects(); len(list) != 0 {
			t.Errorf("they became %+v", list)
		}
		list := k.deliveries("github", "")
		if len(list) != 12 {
			t.Errorf("%d of them are visible", len(list))
		}
		for _, d := range list {
			if d.Outcome != hookstore.Refused || d.Reason == "" || d.DeliveryID != "" || d.Body != nil {
				t.Errorf("kept as %+v", d)
			}
		}
		// None of them took the id.
		k.expect("the real one", http.StatusAccepted, request("d1", opened))
	})
}

func TestFilteredDeliveriesAreKept(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		push := request("d1", opened)
		push.Header.Set("X-GitHub-Event", "push")
		for reason, r := range map[string]*http.Request{
			"header:X-GitHub-Event is push, not issues":     push,
			"body:action is closed, not opened or reopened": request("d2", `{"action":"closed"}`),
			"body:action is not there":                      request("d3", `{"issue":1}`),
		} {
			k.expect(reason, http.StatusAccepted, r)
			if d := k.deliveries("github", "")[0]; d.Outcome != hookstore.Filtered || d.Reason != reason {
				t.Errorf("it is %s: %s, want %s", d.Outcome, d.Reason, reason)
			}
		}
		k.expect("one that fits", http.StatusAccepted, request("d4", `{"action":"reopened"}`))
		if list := k.effects(); len(list) != 1 {
			t.Errorf("they became %+v", list)
		}
		// Numbers and flags are compared as they are written.
		k.apply("kind: hook\nname: github\nverify: {scheme: github, secret: \"${GITHUB_SECRET}\"}\nwhen: {body:n: 1.50, body:list.1.ok: true}\njob: {task: log}\n")
		k.expect("a number and a flag", http.StatusAccepted, request("d5", `{"n":1.50,"list":[0,{"ok":true}]}`))
		if list := k.effects(); len(list) != 2 {
			t.Errorf("they became %+v", list)
		}
	})
}

// The same delivery fifty times at once has one effect, and one answer says that it
// is new.
func TestTheSameAtOnce(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		codes := make([]int, 50)
		var wg sync.WaitGroup
		for i := range codes {
			wg.Go(func() { codes[i] = k.send(request("d1", opened)).Code })
		}
		wg.Wait()
		counts := map[int]int{}
		for _, code := range codes {
			counts[code]++
		}
		if counts[http.StatusAccepted] != 1 || counts[http.StatusOK] != 49 {
			t.Errorf("the answers are %v", counts)
		}
		if list := k.effects(); len(list) != 1 {
			t.Errorf("there are %d effects", len(list))
		}
	})
}

// A process that dies before the delivery is committed leaves nothing, and one that
// dies after that leaves it with its effect. The sender sends again in both cases.
func TestKilledAroundTheCommit(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		k.fault = func(string) error { return errKilled }
		k.expect("killed before", http.StatusServiceUnavailable, request("d1", opened))
		if len(k.effects()) != 0 || len(k.deliveries("github", "")) != 0 {
			t.Error("something is left")
		}
		k.fault = nil
		k.start()
		k.expect("again", http.StatusAccepted, request("d1", opened))
		k.start() // after the commit, before the answer arrived
		k.expect("once more", http.StatusOK, request("d1", opened))
		if list := k.effects(); len(list) != 1 {
			t.Errorf("there are %d effects", len(list))
		}
	})
}

// While the database is away the sender is told to come again, and then it works.
func TestTheDatabaseIsAway(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		k.fault = func(string) error { return &pawl.Error{Code: pawl.CodeUnavailable, Msg: "away"} }
		w := k.expect("away", http.StatusServiceUnavailable, request("d1", opened))
		if w.Header().Get("Retry-After") == "" {
			t.Error("the sender is not told to come again")
		}
		k.fault = nil
		k.expect("back", http.StatusAccepted, request("d1", opened))
	})
}

func TestADatabaseThatIsClosed(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		if err := k.db.Close(); err != nil {
			t.Fatal(err)
		}
		k.expect("closed", http.StatusServiceUnavailable, request("d1", opened))
		k.expect("forged, while it is closed", http.StatusUnauthorized, signed(request("d1", opened), "guess", opened))
		if !k.db.Shared() {
			k.expect("unknown, while it is closed", http.StatusNotFound, httptest.NewRequest(http.MethodPost, "/hooks/nobody", nil))
		} else { // another process may have made it: the sender comes again
			k.expect("unknown, while it is closed", http.StatusServiceUnavailable, httptest.NewRequest(http.MethodPost, "/hooks/nobody", nil))
		}
	})
}

// A body is read only if somebody has the name, and not for ever.
func TestSlowBodies(t *testing.T) {
	k := newKit(t, sqlite(t))
	k.apply(github)
	read := &watched{}
	r := httptest.NewRequest(http.MethodPost, "/hooks/nobody", read)
	k.expect("nobody", http.StatusNotFound, r)
	if read.read {
		t.Error("the body was read before the hook was known")
	}
	k.s.bodyTimeout = 100 * time.Millisecond
	server := httptest.NewServer(k.s)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	begun := time.Now()
	_, _ = fmt.Fprintf(conn, "POST /hooks/github HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408") {
		t.Errorf("the answer is %s, %v", answer, err)
	}
	if took := time.Since(begun); took > bodyTimeout {
		t.Errorf("it took %s", took)
	}
	if list := k.deliveries("github", hookstore.Refused); len(list) != 1 || list[0].Reason != errSlow.Error() {
		t.Errorf("it is kept as %+v", list)
	}
}

type watched struct{ read bool }

func (w *watched) Read([]byte) (int, error) { w.read = true; return 0, io.EOF }

// Bodies that end too soon are refused.
func TestCutOffBodies(t *testing.T) {
	k := newKit(t, sqlite(t))
	k.apply(github)
	r := request("d1", opened)
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(opened[:5]), failing{}))
	k.expect("cut off", http.StatusUnprocessableEntity, r)
	if len(k.effects()) != 0 {
		t.Error("it had an effect")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// However many are refused, few are kept, and none of their bodies.
func TestRefusedDeliveriesAreBounded(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		for range 3 * refusedBurst {
			k.expect("forged", http.StatusUnauthorized, signed(request("d1", opened), "guess", opened))
		}
		if n := len(k.deliveries("github", hookstore.Refused)); n < refusedBurst || n > refusedBurst+5 {
			t.Errorf("%d are kept after a burst", n)
		}
		err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			for i := range 2 * refusedKept {
				if err := hookstore.In(tx).AddRefused(ctx, hookstore.Delivery{Hook: "github", Reason: fmt.Sprint(i)}, refusedKept); err != nil {
					return err
				}
			}
			return hookstore.In(tx).AddRefused(ctx, hookstore.Delivery{Hook: "other", Reason: "x"}, refusedKept)
		})
		if err != nil {
			t.Fatal(err)
		}
		list := k.deliveries("github", hookstore.Refused)
		if len(list) != refusedKept || list[0].Reason != fmt.Sprint(2*refusedKept-1) {
			t.Errorf("%d are kept, the newest is %s", len(list), list[0].Reason)
		}
	})
}

func TestTheLimiterLetsOneThroughNowAndThen(t *testing.T) {
	var l limiter
	now := time.Now()
	count := func(at time.Time) (n int) {
		for range 100 {
			if l.allow("h", at) {
				n++
			}
		}
		return n
	}
	if n := count(now); n != refusedBurst {
		t.Errorf("%d at once", n)
	}
	if n := count(now.Add(3 * refusedEvery)); n != 3 {
		t.Errorf("%d three seconds later", n)
	}
	if !l.allow("other", now) {
		t.Error("one hook holds another one back")
	}
}

// More requests than there is room for are told to come again.
func TestThereIsRoomForSoMany(t *testing.T) {
	k := newKit(t, sqlite(t))
	k.apply(github)
	for range mostFlights {
		k.s.flights <- struct{}{}
	}
	k.expect("full", http.StatusServiceUnavailable, request("d1", opened))
	<-k.s.flights
	k.expect("room for one", http.StatusAccepted, request("d1", opened))
	if len(k.s.flights) != mostFlights-1 {
		t.Error("it did not give its place back")
	}
}

// Large bodies share the room that there is, and give it back.
func TestLargeBodiesShareRoom(t *testing.T) {
	k := newKit(t, sqlite(t))
	k.apply(github)
	held, err := k.s.large.Acquire(t.Context(), mostLarge)
	if err != nil {
		t.Fatal(err)
	}
	k.expect("a small one", http.StatusAccepted, request("d1", opened))
	large := `{"action":"opened","x":"` + strings.Repeat("x", 2*smallBody) + `"}`
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	k.expect("a large one without room", http.StatusServiceUnavailable, request("d2", large).WithContext(ctx))
	k.s.large.Release(held)
	k.expect("a large one", http.StatusAccepted, request("d2", large))
	if k.s.large.Held() != 0 {
		t.Error("it did not give the room back")
	}
}

// The secret that is in force when a delivery is kept decides, whichever process
// changed it.
func TestAnotherProcessChangesTheHook(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.apply(github)
		here := k.s
		k.env["NEW_SECRET"] = "another"
		k.start() // another process
		k.apply(strings.ReplaceAll(github, "GITHUB_SECRET", "NEW_SECRET"))
		there := k.s

		k.s = here
		k.expect("the old secret", http.StatusUnauthorized, request("d1", opened))
		if len(k.effects()) != 0 {
			t.Error("it had an effect")
		}
		k.expect("the new secret", http.StatusAccepted, signed(request("d2", opened), "another", opened))

		k.s = there
		err := k.db.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error { return k.s.Delete(ctx, tx, "github", "ada") })
		if err != nil {
			t.Fatal(err)
		}
		k.expect("deleted", http.StatusNotFound, request("d3", opened))
		k.s = here
		k.expect("deleted there", http.StatusNotFound, signed(request("d3", opened), "another", opened))
	})
}

// On PostgreSQL a hook that another process made is found.
func TestAnotherProcessMakesAHook(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		here := k.s
		k.start()
		k.apply(github)
		there := k.s
		k.s = here
		want := http.StatusNotFound // a SQLite file has one process
		if k.db.Shared() {
			want = http.StatusAccepted
		}
		k.expect("here", want, request("d1", opened))
		k.s = there
		k.expect("there", http.StatusAccepted, request("d2", opened))
	})
}

// Unknown names ask the database at most once in a while.
func TestUnknownNamesDoNotAskTheDatabase(t *testing.T) {
	asked := 0
	var mu sync.Mutex
	db, err := store.Open(t.Context(), postgres(t), store.Options{Trace: func(string, []any) { mu.Lock(); asked++; mu.Unlock() }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	k := &kit{t: t, db: db, env: map[string]string{}}
	k.start()
	mu.Lock()
	asked = 0
	mu.Unlock()
	for i := range 200 {
		k.expect("nobody", http.StatusNotFound, httptest.NewRequest(http.MethodPost, fmt.Sprintf("/hooks/nobody%d", i), nil))
	}
	mu.Lock()
	defer mu.Unlock()
	if asked > 3 {
		t.Errorf("the database was asked %d times", asked)
	}
}

// Secrets that are with a file are in no row, and another process does without them.
func TestSecretsOfFilesStayInMemory(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		list, err := spec.Parse("hook.yaml", []byte(strings.ReplaceAll(github, "${GITHUB_SECRET}", secret)))
		if err != nil {
			t.Fatal(err)
		}
		if _, faults := list[0].Resolve(func(string) string { return "" }); len(faults) == 0 {
			t.Error("the API takes a secret")
		}
		done := k.put(list[0], []string{secret})
		if strings.Contains(string(done.Hook.Definition), secret) {
			t.Errorf("the row has it: %s", done.Hook.Definition)
		}
		k.expect("here", http.StatusAccepted, request("d1", opened))
		if issue := k.s.Issue(done.Hook); issue != "" {
			t.Errorf("the issue is %s", issue)
		}
		k.start()
		k.expect("elsewhere", http.StatusServiceUnavailable, request("d2", opened))
		if k.s.Issue(done.Hook) == "" {
			t.Error("nobody says why")
		}
		k.put(list[0], []string{secret}) // its folder is served here, too
		k.expect("here as well", http.StatusAccepted, request("d2", opened))
	})
}
