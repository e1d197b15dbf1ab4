package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/queue"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/mutationstore"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// life is a workflow to which things happen. It has a producer that publishes
// numbered events, a consumer that orders one or two events at a time, and one
// that takes what the first publishes.
type life struct {
	t         *rapid.T
	k         *kit
	w         workflowstore.Workflow
	revision  int
	published []string
	skipped   map[string]int // orders that an event may have that was skipped
	quiet     bool           // the first consumer publishes nothing, so that its commits are held
	board     *jobBoard      // of one with partitions; nil of one without
	sure      bool           // its row says how it stands: somebody looked at it since the last crash

	world  reality           // what really happened, and what was said about it
	calls  []string          // what becomes of the next orders; no more: applied
	reads  []pawl.Class      // how the next reads fail; no more: they do not
	blind  int               // questions that the desk answers with: later
	denies int               // questions about orders that the desk answers with: it is not there
	inCall string            // the arguments of the order that the desk looks at
	during map[string]func() // by handler: what happens while it runs, once
}

// What becomes of an order, beside the classes of a refusal.
const (
	lostAnswer   = "lost answer"
	lostRequest  = "lost request"
	falseRefusal = "false refusal" // it happened, and the desk says that it did not
)

var (
	actionNames = []string{ // more often what is more telling
		"publish", "work", "work", "crash", "crash", "crash", "wait", "wait", "restart", "shutdown", "pause", "resume", "resume", "deploy", "skip", "skip",
		"trouble", "trouble", "trouble", "trouble", "bad read", "during", "during", "run now", "doubt", "doubt", "say", "say", "say", "say", "say", "week", "revoke",
	}
	outcomes = []string{
		lostAnswer, lostRequest, lostAnswer, lostRequest, falseRefusal, string(pawl.ClassTransient), string(pawl.ClassLogic),
		string(pawl.ClassAuth), string(pawl.ClassPermission), string(pawl.ClassPrecondition), string(pawl.ClassInternal),
	}
	livePlaces = append(slices.Clone(places), "before held", "asked", "before stop", "stopped", "before ask", "asked person")
	livePaths  = []string{"producers.poll.handler", "consumers.order.prepare", "consumers.order.mutate", "consumers.order.next", "order", "consumers.tell.prepare"}
)

func newLife(rt *rapid.T, k *kit, name string, parted bool) *life {
	l := &life{t: rt, k: k, skipped: map[string]int{}, during: map[string]func(){}, world: newReality()}
	k.desk.refuse = l.beforeOrder
	k.desk.answer = l.afterOrder
	k.desk.inquiry = l.inquiry
	k.desk.effect = l.world.happened
	k.desk.patience = 5 * time.Second
	k.desk.ignoresKeys = rapid.Bool().Draw(rt, "keys ignored")
	l.quiet = rapid.Bool().Draw(rt, "quiet")
	if parted {
		l.board = newBoard(k)
		l.board.read = len(k.armed.specs)
	}
	l.w = k.deploy(name, "0", l.definition(edition{batch: 1, every: "1m", method: rapid.SampledFrom(methods).Draw(rt, "method")}))
	return l
}

// edition is what differs between versions of the script.
type edition struct {
	broken string // the phase that throws; empty is none
	batch  int    // how many events an order takes
	every  string // how often the producer runs
	apart  string // by what events are, of a life with partitions
	method string // of the desk: order and sign can be asked about, sign must be approved, mail is neither
}

var methods = []string{"order", "sign", "sign", "mail"}

// definition is a version of the script.
func (l *life) definition(e edition) definition {
	handler := func(path string, then goHandler) goHandler {
		return func(c *goCtx, args []json.RawMessage) any {
			l.happens(path)
			out := then(c, args)
			if e.broken == path {
				throw(path + " is broken")
			}
			return out
		}
	}
	d := definition{config: Config{
		Topics:    []string{"in", "out"},
		Producers: []Producer{{Name: "poll", Publishes: []string{"in"}, Schedule: Schedule{Interval: e.every}}},
		Consumers: []Consumer{{Name: "order", Subscribe: []string{"in"}, Publishes: []string{"out"}}, {Name: "tell", Subscribe: []string{"out"}}},
	}}
	d.handlers = map[string]goHandler{}
	l.part(&d, e)
	for path, then := range map[string]goHandler{
		"producers.poll.handler": l.poll,
		"consumers.order.prepare": func(c *goCtx, _ []json.RawMessage) any {
			ids := c.peekSome("in", e.batch)
			c.tool("desk", "read", nil)
			return take("in", ids...)
		},
		"consumers.order.mutate": func(c *goCtx, args []json.RawMessage) any {
			order := dataOf(args[0])
			if e.method == "sign" { // what is approved depends on the instant, which must stay the same
				order = map[string]any{"for": order, "at": c.now}
			}
			c.tool("desk", e.method, order)
			return nothing{}
		},
		"consumers.order.next": func(c *goCtx, args []json.RawMessage) any {
			for _, id := range idsOf(args[0]) {
				if l.quiet {
					break
				}
				c.publish("out", "out-"+id, nil, "")
			}
			return nothing{}
		},
		"consumers.tell.prepare": takeOne("out"),
	} {
		d.handlers[path] = handler(path, then)
	}
	return d
}

// poll publishes the event with the next number.
func (l *life) poll(c *goCtx, args []json.RawMessage) any {
	var state struct{ N int }
	if len(args) > 0 {
		if err := json.Unmarshal(args[0], &state); err != nil {
			panic(err)
		}
	}
	state.N++
	c.tool("desk", "read", nil)
	c.thing(l.k, l.w.Name, fmt.Sprint("p", state.N))
	return map[string]any{"N": state.N}
}

// idsOf are the events that prepare took.
func idsOf(prepared json.RawMessage) (ids []string) {
	list, _ := dataOf(prepared).([]any)
	for _, id := range list {
		ids = append(ids, id.(string))
	}
	return ids
}

// happens does what was to happen while a handler runs.
func (l *life) happens(path string) {
	if act := l.during[path]; act != nil {
		delete(l.during, path)
		act()
	}
}

// beforeOrder is the desk before it does anything.
func (l *life) beforeOrder(c tool.Call) *tool.Error {
	if c.Method == "read" {
		if len(l.reads) == 0 {
			return nil
		}
		class := l.reads[0]
		l.reads = l.reads[1:]
		return refusal(class)
	}
	l.checkAllowed(c)
	l.k.desk.takes = time.Duration(rapid.SampledFrom([]int{0, 0, 0, 3, 8, 40}).Draw(l.t, "takes")) * time.Second
	l.inCall = string(c.Args)
	l.happens("order")
	l.inCall = ""
	if len(l.calls) == 0 || l.calls[0] == lostAnswer || l.calls[0] == falseRefusal {
		return nil
	}
	outcome := l.calls[0]
	l.calls = l.calls[1:]
	if outcome == lostRequest {
		return &tool.Error{Class: pawl.ClassTransient, Code: "lost", Msg: "lost on the way"}
	}
	if l.k.desk.done(c.Key) { // a definite refusal of what has happened is the other end's word that it did not
		l.world.deny(c.Key, c.Args)
	}
	return refusal(pawl.Class(outcome))
}

// afterOrder is the desk when it answers.
func (l *life) afterOrder(c tool.Call) error {
	if len(l.calls) == 0 {
		return nil
	}
	outcome := l.calls[0] // beforeOrder took the others
	l.calls = l.calls[1:]
	if outcome == falseRefusal {
		l.world.deny(c.Key, c.Args)
		return refusal(pawl.ClassTransient)
	}
	return errLost
}

// inquiry is the desk when it is asked: it tells the truth, or nothing, or
// that an order is not there although it is; the last as long as that proves
// nothing, and if it honours keys at any time.
func (l *life) inquiry(c tool.Call) (happened, known bool) {
	if l.blind > 0 {
		l.blind--
		return false, false
	}
	happened = l.k.desk.done(c.Key)
	if happened && l.denies > 0 && (!l.k.desk.ignoresKeys || l.mayBeUnderWay(c.Key)) {
		l.denies--
		l.world.misled[c.Key] = true // if nobody makes the call again, it stays recorded as failed
		return false, true
	}
	return happened, true
}

// mayBeUnderWay reports whether a call is so young that "not there" proves
// nothing.
func (l *life) mayBeUnderWay(key string) bool {
	rows := l.k.ledgerRows(l.w)
	at := slices.IndexFunc(rows, func(m mutationstore.Mutation) bool { return m.IdempotencyKey == key })
	return time.Now().Before(rows[at].CreatedAt.Add(time.Minute))
}

// actions are the things that can happen.
func (l *life) actions() map[string]func() {
	return map[string]func(){
		"publish": l.publish,
		"work":    func() { l.work() },
		"crash": func() {
			l.publish()
			l.crash()
		},
		"wait": func() {
			pass(time.Duration(rapid.SampledFrom([]int{1, 10, 20, 65, 700}).Draw(l.t, "seconds")) * time.Second)
			l.work()
		},
		"restart":  func() { l.k.start("again"); l.looked() },
		"shutdown": l.shutdown,
		"pause":    func() { l.k.pause(l.w.Name) },
		"resume":   func() { l.k.resume(l.w.Name); l.work() },
		"deploy":   l.deploy,
		"skip":     l.skip,
		"trouble": func() {
			l.calls = append(l.calls, rapid.SliceOfN(rapid.SampledFrom(outcomes), 1, 2).Draw(l.t, "calls")...)
			l.blind += rapid.SampledFrom([]int{0, 1, 2, 3, 7}).Draw(l.t, "blind")
			l.denies += rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(l.t, "denies")
			l.publish()
			l.work()
		},
		"bad read": func() {
			l.reads = append(l.reads, rapid.SampledFrom([]pawl.Class{pawl.ClassTransient, pawl.ClassLogic, pawl.ClassAuth, pawl.ClassInternal}).Draw(l.t, "read"))
			l.work()
		},
		"during":  l.meanwhile,
		"doubt":   l.doubt,
		"say":     func() { l.say(); l.work() },
		"week":    l.week,
		"revoke":  l.revoke,
		"run now": func() { _ = l.k.runNow(l.w.Name); l.work() }, // mostly refused
	}
}

// meanwhile is a person who does something while a handler runs, in this process
// or in another one.
func (l *life) meanwhile() {
	act := map[string]func(){
		"publish": l.publish, "pause": func() { l.k.pause(l.w.Name) }, "resume": func() { l.k.resume(l.w.Name) }, "deploy": l.deploy, "skip": l.skip,
		"say": l.say, "revoke": l.revoke,
	}[rapid.SampledFrom([]string{"publish", "pause", "pause", "resume", "deploy", "skip", "skip", "say", "say", "revoke"}).Draw(l.t, "what")]
	elsewhere := rapid.Bool().Draw(l.t, "elsewhere")
	l.during[rapid.SampledFrom(livePaths).Draw(l.t, "where")] = func() {
		here := l.k.s
		defer func() { l.k.s = here }()
		if elsewhere {
			var err error
			if l.k.s, err = New(here.cfg); err != nil {
				l.k.t.Fatal(err)
			}
			l.k.s.Attach(&l.k.armed)
		}
		act()
	}
	l.publish()
	l.work()
}

func (l *life) publish() {
	if len(l.published) > 0 && rapid.IntRange(0, 4).Draw(l.t, "again") == 0 {
		l.k.publish(l.w, "in", rapid.SampledFrom(l.published).Draw(l.t, "known"))
		return
	}
	for range rapid.IntRange(1, 3).Draw(l.t, "events") {
		id := fmt.Sprint("e", len(l.published)+1)
		l.published = append(l.published, id)
		l.k.publish(l.w, "in", id)
	}
}

// shutdown is a session whose process is told to stop while a handler runs.
func (l *life) shutdown() {
	ctx, cancel := context.WithCancelCause(l.k.t.Context())
	defer cancel(nil)
	path := rapid.SampledFrom(livePaths).Draw(l.t, "where")
	l.during[path] = func() { cancel(queue.ErrShutdown) }
	if _, err := l.session(ctx); err != nil && !errors.Is(err, queue.ErrShutdown) && !errors.Is(err, context.Canceled) {
		l.k.t.Fatalf("the session that was told to stop ended with %v", err)
	}
	delete(l.during, path)
	l.k.start("after-shutdown")
	l.looked()
}

func (l *life) deploy() {
	l.revision++
	broken := rapid.SampledFrom([]string{"", "", "producers.poll.handler", "consumers.order.prepare", "consumers.order.mutate", "consumers.order.next"}).Draw(l.t, "broken")
	l.k.deploy(l.w.Name, fmt.Sprint(l.revision), l.definition(edition{
		broken: broken, batch: rapid.IntRange(1, 2).Draw(l.t, "batch"), every: "1m", apart: l.drawApart(), method: rapid.SampledFrom(methods).Draw(l.t, "method"),
	}))
}

// skip gives up an event, mostly one that a run holds, and notes how often it
// may be ordered: as often as it was, and once if the call that names it is
// under way at this moment.
func (l *life) skip() {
	from := l.published
	if rapid.IntRange(0, 3).Draw(l.t, "any") > 0 {
		held := l.k.statuses(l.w, "in")
		from = slices.DeleteFunc(slices.Clone(from), func(id string) bool { return held[id] != eventstore.EventReserved })
	}
	if len(from) == 0 {
		return
	}
	id := rapid.SampledFrom(from).Draw(l.t, "skipped")
	if _, again := l.skipped[id]; again {
		return
	}
	most := l.orders()[id]
	if strings.Contains(l.inCall, fmt.Sprintf("%q", id)) {
		most = 1
	}
	l.k.skipInput(l.w, id)
	l.skipped[id] = most
}

// orders counts how often each event was ordered.
func (l *life) orders() map[string]int {
	out := map[string]int{}
	for key, args := range l.k.desk.orders {
		for _, id := range idsIn(args) {
			out[id] += 1 + l.k.desk.again[key]
		}
	}
	return out
}
