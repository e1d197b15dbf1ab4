package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/hook"
	"github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/workflow"
)

// inbox is what is known of a hook, which makes deliveries jobs, or events of the
// workflow if there is one.
type inbox struct {
	w       *world
	version int
	sent    []*letter // guarded by w.mu, as are the others
	closed  bool      // what deliveries become is refused
}

// letter is a delivery.
type letter struct {
	id    string
	body  []byte
	known bool // the sender heard that it was taken
	told  int  // how often it heard that it was new
	asked int  // how often people wanted its effect once more
}

const inboxName = "inbox"

func newInbox(w *world) *inbox {
	b := &inbox{w: w}
	b.apply(0)
	return b
}

// apply puts the definition in force, in another version each time.
func (b *inbox) apply(at int) {
	b.version++
	becomes := "job: {task: " + jobTask + ", lane: letters}"
	if b.w.shop != nil {
		becomes = "publish: {workflow: shop, topic: in}"
	}
	text := fmt.Sprintf("kind: hook\nname: %s\ndescription: version %d\nverify: {scheme: token, header: X-Token, secret: \"${TOKEN}\"}\ndeliveryId: header:X-Id\n%s\n", inboxName, b.version, becomes)
	list, err := spec.Parse("hook.yaml", []byte(text))
	if err != nil {
		b.w.fail("the definition of the hook: %v", err)
		return
	}
	err = b.w.try(at, func(l *life) error {
		return l.db.Write(l.ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := l.hooks.Apply(ctx, tx, list[0], []string{token}, "u", "tester")
			return err
		})
	})
	b.w.note("apply the hook: %v", err)
	b.w.refused("apply the hook", err)
}

const token = "a token that is long enough"

// newHooks are the hooks of a process, wired as internal/server does.
func (l *life) newHooks() *hook.Service {
	return hook.New(hook.Config{
		DB: l.db, Log: l.log, Getenv: func(string) string { return token }, MaxPayload: 1 << 20,
		Together: func(ctx context.Context, e hook.Event, fn store.Func) error {
			return eventstore.Write(ctx, l.db, e.Workflow, e.Topic, e.MessageID, fn)
		},
		Publish: func(ctx context.Context, tx *store.Tx, e hook.Event, by string) error {
			if err := l.n.w.inbox.refusal(); err != nil {
				return err
			}
			return l.workflows.PublishMany(ctx, tx, e.Workflow, []workflow.ExternalEvent{{Topic: e.Topic, MessageID: e.MessageID, Payload: e.Payload}}, by)
		},
		Enqueue: func(ctx context.Context, tx *store.Tx, job store.JobSpec) (string, error) {
			if err := l.n.w.inbox.refusal(); err != nil {
				return "", err
			}
			jobs, err := l.queue.EnqueueTx(ctx, tx, job)
			if err != nil {
				return "", err
			}
			return strconv.FormatInt(jobs[0].ID, 10), nil
		},
	})
}

func (b *inbox) refusal() error {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if b.closed {
		return &pawl.Error{Code: pawl.CodeInvalid, Msg: "it is refused (simulated)"}
	}
	return nil
}

func (b *inbox) act(r *rand.Rand, what string) {
	switch what {
	case "deliver":
		for i := range 1 + r.IntN(3) {
			b.post(r, b.write(r), time.Duration(i)*5077, 1+r.IntN(2))
		}
	case "deliver again":
		b.w.mu.Lock()
		list := slices.Clone(b.sent)
		b.w.mu.Unlock()
		if len(list) > 0 && !b.w.pruned { // what is forgotten is new
			b.post(r, pick(r, list), 0, 1)
		}
	case "refuse effects":
		b.shut(r.IntN(3) > 0)
	case "deliver once more":
		b.redeliver(r)
	case "edit hook":
		b.apply(r.IntN(len(b.w.nodes)))
	}
}

func (b *inbox) shut(closed bool) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.closed = closed
}

// write is a new letter.
func (b *inbox) write(r *rand.Rand) *letter {
	w := b.w
	w.mu.Lock()
	defer w.mu.Unlock()
	d := &letter{id: fmt.Sprint("d", len(b.sent)+1)}
	b.sent = append(b.sent, d)
	if w.shop != nil {
		d.body = payloadOf(b.eventOf(d))
		return d
	}
	j := &job{Name: fmt.Sprint("j", len(w.jobs)+1), Takes: pick(r, []time.Duration{0, 400, 1200}) * time.Millisecond, letter: d}
	w.jobs[j.Name] = j
	d.body, _ = json.Marshal(j)
	return d
}

// eventOf is the event that a letter becomes.
func (b *inbox) eventOf(d *letter) string { return "hook/" + inboxName + "/" + d.id }

// post is a sender that sends until somebody says that it was taken, so many times.
func (b *inbox) post(r *rand.Rand, d *letter, after time.Duration, times int) {
	at := r.IntN(len(b.w.nodes))
	b.w.acts.Go(func() {
		pass(after)
		for range times {
			err := b.w.try(at, func(l *life) error { return b.postOnce(l, d) })
			b.w.note("letter %s: %v", d.id, err)
			b.w.refused("deliver", err)
			at++
		}
	})
}

func (b *inbox) postOnce(l *life, d *letter) error {
	l.stands()
	req := httptest.NewRequestWithContext(l.ctx, http.MethodPost, hook.Path+inboxName, strings.NewReader(string(d.body)))
	req.Header.Set("X-Token", token)
	req.Header.Set("X-Id", d.id)
	req.Header.Set("Content-Type", "application/json")
	to := httptest.NewRecorder()
	l.hooks.ServeHTTP(to, req)
	l.stands()
	switch {
	case l.isDead(): // it answers nobody
		return errDead
	case to.Code == http.StatusServiceUnavailable, to.Code == http.StatusNotFound: // or it has not heard of the hook
		return errAway
	case to.Code != http.StatusOK && to.Code != http.StatusAccepted:
		return fmt.Errorf("the answer to a letter is %d: %s", to.Code, to.Body)
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	d.known = true
	if to.Code == http.StatusAccepted {
		d.told++
	}
	return nil
}

// redeliver is a person who wants the effect of a letter once more.
func (b *inbox) redeliver(r *rand.Rand) {
	b.w.mu.Lock()
	list := slices.Clone(b.sent)
	b.w.mu.Unlock()
	if len(list) == 0 {
		return
	}
	d := pick(r, list)
	b.w.mu.Lock()
	d.asked++
	b.w.mu.Unlock()
	l := b.w.nodes[r.IntN(len(b.w.nodes))].now()
	if l == nil {
		return
	}
	err := l.db.Write(l.ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := l.hooks.Redeliver(ctx, tx, inboxName, d.id, "tester")
		return err
	})
	b.w.note("deliver %s once more: %v", d.id, err)
}

// heal lets effects happen; it reports whether none is to come.
func (b *inbox) heal(_ *rand.Rand, _ int) bool {
	b.shut(false)
	return len(b.w.rows(`select id||'' from hook_deliveries where outcome = 'pending' limit 1`)) == 0
}

// check holds that every letter that was taken had its effect, once, and that it was
// new to whoever took it once.
func (b *inbox) check() {
	w := b.w
	effects := map[string]int{}
	for _, row := range w.rows(`select message_id||'' from events where topic = 'in' and message_id like 'hook/%'`) {
		id, _, _ := strings.Cut(row[0], "#")
		effects[id]++
	}
	for _, d := range b.sent {
		if d.told > 1 && !w.pruned {
			w.fail("letter %s was new %d times", d.id, d.told)
		}
		if w.shop == nil || w.pruned { // jobs are counted as they run
			continue
		}
		if n := effects[b.eventOf(d)]; n > 1+d.asked || d.known && n == 0 {
			w.fail("letter %s was taken: %v, and became %d events; people wanted it %d more times", d.id, d.known, n, d.asked)
		}
	}
}
