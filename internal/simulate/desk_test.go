package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool"
)

// desk is what workflows call. It outlives whoever calls it: an order that was
// begun is carried out.
type desk struct {
	w           *world
	ignoresKeys bool // an order whose key is known is carried out once more

	mu     sync.Mutex
	orders map[string]*order // by key; guarded by mu, as are the others
	marks  map[string][]string
	first  map[string]int  // by event: the number of its first order
	calls  []string        // what becomes of the next orders; no more: they are carried out
	reads  []pawl.Class    // how the next reads fail
	takes  []time.Duration // how long the next orders take
	blind  int             // questions that are answered with: later
	misled map[string]bool // by key: somebody said the opposite of what is true
}

type order struct {
	ids  []string
	ends time.Time
	long bool // it takes longer than Pawl asks for it
	n    int  // how often it was carried out
}

// What becomes of an order, beside the classes of a refusal.
const (
	lostAnswer   = "lost answer"
	lostRequest  = "lost request"
	falseRefusal = "false refusal" // it happened, and the desk says that it did not
)

// The marks in the story of an event: it was ordered, or somebody gave his word
// that it was not.
const (
	markEffect = "effect"
	markDenial = "denial"
)

func newDesk(w *world) *desk {
	return &desk{w: w, orders: map[string]*order{}, marks: map[string][]string{}, first: map[string]int{}, misled: map[string]bool{}}
}

// deskOf is the desk as a process reaches it.
type deskOf struct {
	d *desk
	l *life
}

func (o deskOf) Methods() []tool.Method {
	return []tool.Method{
		{Name: "order", Mutation: true, Reconciles: true}, {Name: "mail", Mutation: true}, {Name: "read"}, {Name: "sign", Mutation: true, Reconciles: true},
	}
}

// patience is how long a caller waits.
const patience = 5 * time.Second

var errUnknown error = &tool.Error{Class: pawl.ClassIndeterminate, Code: "timeout", Msg: "no answer"}

func refusal(class pawl.Class) *tool.Error {
	return &tool.Error{Class: class, Code: "refused", Msg: "refused as " + string(class), NotApplied: true}
}

func idsIn(args json.RawMessage) (ids []string) {
	if err := json.Unmarshal(args, &ids); err != nil {
		panic(err)
	}
	return ids
}

func (o deskOf) Call(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	if o.l.isDead() {
		return nil, errUnknown
	}
	d := o.d
	if c.Method == "read" {
		o.l.stands()
		return d.read()
	}
	o.l.n.w.leaves(o.l, "call "+string(c.Args))
	o.l.n.w.shop.checkPlaces()
	o.l.n.w.shop.checkOwn(o.l, c)
	o.l.n.w.shop.checkAllowed(c)
	ends, fate := d.begin(c)
	if e, refused := errors.AsType[*tool.Error](fate); refused && e.NotApplied || fate != nil && ends.IsZero() {
		return nil, fate
	}
	late := time.Now().Add(patience)
	if ends.After(late) {
		ends, fate = late, errUnknown
	}
	if wait := time.Until(ends); wait > 0 {
		select {
		case <-ctx.Done():
			fate = errUnknown
		case <-time.After(wait):
		}
	}
	o.l.stands()
	if o.l.isDead() {
		return nil, errUnknown
	}
	if fate != nil {
		return nil, fate
	}
	return json.RawMessage(`{"number":1}`), nil
}

func (d *desk) read() (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.reads) == 0 {
		return json.RawMessage(`{"open":true}`), nil
	}
	class := d.reads[0]
	d.reads = d.reads[1:]
	return nil, refusal(class)
}

// begin is an order that arrives: when it is done, and what the caller hears.
func (d *desk) begin(c tool.Call) (ends time.Time, fate error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what := ""
	if len(d.calls) > 0 {
		what, d.calls = d.calls[0], d.calls[1:]
	}
	o, known := d.orders[c.Key]
	switch what {
	case "", lostAnswer, falseRefusal:
	case lostRequest:
		return time.Time{}, errUnknown
	default:
		if known { // a refusal of what has happened is the other end's word that it did not
			d.deny(c.Key, o.ids)
		}
		return time.Time{}, refusal(pawl.Class(what))
	}
	if !known {
		o = &order{ids: idsIn(c.Args), ends: time.Now()}
		if len(d.takes) > 0 {
			o.ends, o.long, d.takes = o.ends.Add(d.takes[0]), d.takes[0] > time.Minute, d.takes[1:]
		}
		d.orders[c.Key] = o
	}
	if !known || d.ignoresKeys {
		o.n++
		for _, id := range o.ids {
			if _, before := d.first[id]; !before {
				d.first[id] = len(d.first)
			}
			d.marks[id] = append(d.marks[id], markEffect)
		}
		d.w.note("the desk begins %v with key %s", o.ids, short(c.Key))
		d.repeated()
	}
	switch what {
	case lostAnswer:
		fate = errUnknown
	case falseRefusal:
		d.deny(c.Key, o.ids)
		fate = refusal(pawl.ClassTransient)
	}
	return o.ends, fate
}

func short(key string) string { return key[max(0, len(key)-6):] }

// deny notes that somebody says on his word that an order was not carried out.
func (d *desk) deny(key string, ids []string) {
	d.misled[key] = true
	for _, id := range ids {
		d.marks[id] = append(d.marks[id], markDenial)
	}
}

// repeated holds that nothing is ordered twice unless somebody denied the first.
func (d *desk) repeated() {
	for id, marks := range d.marks {
		for i := range marks[1:] {
			if marks[i] == markEffect && marks[i+1] == markEffect {
				d.w.fail("event %s was ordered twice, and nobody said in between that it was not", id)
			}
		}
	}
}

func (o deskOf) Reconcile(_ context.Context, c tool.Call) (tool.Answer, error) {
	o.l.stands()
	if o.l.isDead() {
		return tool.Answer{State: tool.Later}, nil
	}
	d := o.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blind > 0 {
		d.blind--
		return tool.Answer{State: tool.Later}, nil
	}
	ord := d.orders[c.Key]
	if ord != nil && !time.Now().Before(ord.ends) {
		return tool.Answer{State: tool.Applied, Result: json.RawMessage(`{"number":2}`)}, nil
	}
	if ord != nil && ord.long { // that it is not there is believed after a minute
		d.deny(c.Key, ord.ids)
	}
	return tool.Answer{State: tool.Absent}, nil
}

// happened reports whether the order of a key was carried out, or will be.
func (d *desk) happened(key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.orders[key] != nil
}

func (d *desk) effects(id string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.marks[id] {
		if m == markEffect {
			n++
		}
	}
	return n
}

// heal makes the desk work and know everything.
func (d *desk) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.reads, d.takes, d.blind = nil, nil, nil, 0
}
