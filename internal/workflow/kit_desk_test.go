package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/telemetry"
	"github.com/pawlrun/pawl/internal/tool"
	"net/http"
)

// desk is a tool: a shop of which the test decides how it answers. It outlives
// its callers: an order that was begun is carried out, whoever waits for it, and
// can be seen when it is done.
type desk struct {
	place string // where calls go, for people; changed between runs only

	mu     sync.Mutex
	orders map[string]json.RawMessage // by key: what really happened, or will
	ends   map[string]time.Time       // by key: when it is done
	again  map[string]int             // by key: how often it happened once more
	asked  int
	traces []string // by call: the traceparent that it would send; guarded by mu

	takes       time.Duration // how long an order takes
	patience    time.Duration // of callers; zero is endless
	ignoresKeys bool          // an order whose key is known is carried out once more

	effect  func(call tool.Call)              // told of everything that happens
	answer  func(call tool.Call) error        // after the order was taken; nil answers
	refuse  func(call tool.Call) *tool.Error  // before anything happens
	permit  func(err error) *tool.Error       // told whether the call may leave; nil does not ask
	inquiry func(call tool.Call) (bool, bool) // reconcile: happened, known; nil tells the truth
}

func newDesk() *desk {
	d := &desk{}
	d.clear()
	return d
}

// clear makes the desk forget all orders.
func (d *desk) clear() {
	d.orders, d.ends, d.again = map[string]json.RawMessage{}, map[string]time.Time{}, map[string]int{}
}

func (d *desk) Address(tool.Call) string { return d.place }

func (d *desk) Methods() []tool.Method {
	return []tool.Method{
		{Name: "order", Mutation: true, Reconciles: true}, {Name: "mail", Mutation: true}, {Name: "read"}, {Name: "burn", Mutation: true}, {Name: "sign", Mutation: true, Reconciles: true},
	}
}

func (d *desk) Call(ctx context.Context, c tool.Call) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		if err := d.refuse(c); err != nil {
			return nil, err
		}
	}
	if c.Method == "read" {
		return json.RawMessage(`{"open":true}`), nil
	}
	if d.permit != nil {
		if err := d.permit(outbound.Permitted(ctx)); err != nil {
			return nil, err
		}
	}
	h := http.Header{}
	telemetry.Pass(ctx, h)
	d.traces = append(d.traces, h.Get(telemetry.Header))
	d.take(c)
	if err := d.wait(ctx, c); err != nil {
		return nil, err
	}
	if d.answer != nil {
		if err := d.answer(c); err != nil {
			return nil, err
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"number":%d}`, len(d.orders))), nil
}

// take begins an order, unless its key says that it was.
func (d *desk) take(c tool.Call) {
	_, known := d.orders[c.Key]
	switch {
	case known && !d.ignoresKeys:
		return
	case known:
		d.again[c.Key]++
	default:
		d.orders[c.Key], d.ends[c.Key] = c.Args, time.Now().Add(d.takes)
	}
	if d.effect != nil {
		d.effect(c)
	}
}

// wait is the caller, who waits for the end of the order as long as he has
// patience and is not told to go.
func (d *desk) wait(ctx context.Context, c tool.Call) error {
	left, gone := time.Until(d.ends[c.Key]), false
	if d.patience > 0 && left > d.patience {
		left, gone = d.patience, true
	}
	if left <= 0 {
		return nil
	}
	d.mu.Unlock()
	defer d.mu.Lock()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		gone = true
	case <-timer.C:
	}
	if gone {
		return &tool.Error{Class: pawl.ClassIndeterminate, Code: "timeout", Msg: "no answer in time"}
	}
	return nil
}

// done reports whether an order was carried out, as of now.
func (d *desk) done(key string) bool {
	_, begun := d.orders[key]
	return begun && !time.Now().Before(d.ends[key])
}

func (d *desk) Reconcile(_ context.Context, c tool.Call) (tool.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	happened := d.done(c.Key)
	if d.inquiry != nil {
		var known bool
		if happened, known = d.inquiry(c); !known {
			return tool.Answer{State: tool.Later}, nil
		}
	}
	if !happened {
		return tool.Answer{State: tool.Absent}, nil
	}
	return tool.Answer{State: tool.Applied, Result: json.RawMessage(`{"number":"asked"}`)}, nil
}

// things are the arguments of all orders that really happened, as often as they
// did, sorted.
func (d *desk) things() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for key, args := range d.orders {
		for range 1 + d.again[key] {
			out = append(out, strings.Trim(string(args), `"`))
		}
	}
	slices.Sort(out)
	return out
}
