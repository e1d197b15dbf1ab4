package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/script"
)

// edition is a version of the script: what there would be in its text.
type edition struct {
	N      int    // so that no two are the same
	Broken string // the handler that throws; empty is none
	Batch  int    // how many events an order takes
	Method string // of the desk
	Every  string // how often the producer runs; empty: there is none
	Fickle bool   // mutate does not always order the same
	Wakes  bool   // who tells of orders looks once more later
	Parts  int    // how many partitions are at work at once; zero: orders have none
}

// goScripts runs editions instead of scripts. A producer publishes numbered
// events to "in", a consumer orders them at the desk and publishes "out", and
// another one takes that.
type goScripts struct{}

func (goScripts) Compile(_ context.Context, file, source string) (*script.Program, error) {
	return script.NewProgram(file, source, nil), nil
}

func editionOf(p *script.Program) (e edition, err error) {
	return e, json.Unmarshal([]byte(p.JavaScript()), &e)
}

func (goScripts) Describe(_ context.Context, p *script.Program) (script.Description, error) {
	e, err := editionOf(p)
	if err != nil {
		return script.Description{}, err
	}
	d := script.Description{Kind: "object", Functions: []string{"consumers.order.mutate", "consumers.order.next", "consumers.order.prepare", "consumers.tell.prepare"}}
	producers := map[string]any{}
	if e.Every != "" {
		d.Functions = append(d.Functions, "producers.poll.handler")
		producers["poll"] = map[string]any{"publishes": []string{"in"}, "schedule": map[string]string{"interval": e.Every}}
	}
	order := map[string]any{"subscribe": []string{"in"}, "publishes": []string{"out"}}
	if e.Parts > 0 {
		order["partition"], order["partitionLimit"] = "payload.of", e.Parts
	}
	d.Config, err = json.Marshal(map[string]any{
		"name": "shop", "topics": map[string]any{"in": map[string]any{}, "out": map[string]any{}}, "producers": producers,
		"consumers": map[string]any{
			"order": order, "tell": map[string]any{"subscribe": []string{"out"}},
		},
	})
	return d, err
}

// abort ends a handler whose call the host refused.
type abort struct{ err error }

type phase struct {
	ctx  context.Context
	host script.Host
	req  script.Request
}

func (c *phase) call(op string, args any) json.RawMessage {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	out, err := c.host.Call(c.ctx, op, raw)
	if err != nil {
		panic(abort{err})
	}
	return out
}

func (c *phase) peek(topic string) (ids []string) {
	var events []struct {
		MessageID string `json:"messageId"`
	}
	if err := json.Unmarshal(c.call("peek", map[string]any{"topic": topic}), &events); err != nil {
		panic(err)
	}
	for _, e := range events {
		ids = append(ids, e.MessageID)
	}
	return ids
}

func (c *phase) tool(method string, args any) {
	c.call("tool", map[string]any{"connection": "desk", "method": method, "args": args})
}

func (c *phase) publish(topic, id, input string) {
	event := map[string]any{"messageId": id, "payload": payloadOf(id)}
	if input != "" {
		event["inputId"] = input
	}
	c.call("publish", map[string]any{"topics": []string{topic}, "event": event})
}

func take(topic string, ids []string) map[string]any {
	if len(ids) == 0 {
		return map[string]any{"reservations": []any{}, "data": nil}
	}
	return map[string]any{"reservations": []any{map[string]any{"topic": topic, "ids": ids}}, "data": ids}
}

// dataOf is the data of what prepare returned: the events that it took.
func dataOf(prepared json.RawMessage) []string {
	var p struct{ Data []string }
	if err := json.Unmarshal(prepared, &p); err != nil {
		panic(err)
	}
	return p.Data
}

func (goScripts) Run(ctx context.Context, req script.Request, host script.Host, _ script.Limits) (out script.Result, err error) {
	e, err := editionOf(req.Program)
	if err != nil {
		return out, err
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case abort:
			err = &script.Aborted{Op: "call", Cause: p.err}
		default:
			panic(p)
		}
	}()
	value := e.run(&phase{ctx, host, req})
	if strings.HasPrefix(req.Handler, e.Broken) && e.Broken != "" {
		return out, &script.Thrown{Name: "Error", Message: e.Broken + " is broken"}
	}
	if value == nil {
		return out, nil
	}
	out.HasValue = true
	out.Value, err = json.Marshal(value)
	return out, err
}

// toldOf is the id of the event that tells of an order: often that of another one in
// the other topic, which may wait at the same time.
func toldOf(id string) string {
	n, err := strconv.Atoi(id[1:])
	if err != nil {
		return id
	}
	return id[:1] + strconv.Itoa(n+1)
}

func (e *edition) run(c *phase) any {
	switch c.req.Handler {
	case "producers.poll.handler":
		var state struct{ N int }
		if len(c.req.Args) > 0 && c.req.Args[0] != nil {
			if err := json.Unmarshal(c.req.Args[0], &state); err != nil {
				panic(err)
			}
		}
		state.N++
		id := fmt.Sprint("p", state.N)
		c.tool("read", nil)
		c.call("registerInput", map[string]string{"source": "test", "type": "thing", "id": id, "title": "Thing " + id})
		c.publish("in", id, script.InputID(c.req.Scope, "test", "thing", id))
		return map[string]any{"N": state.N}
	case "consumers.order.prepare":
		ids := c.peek("in")
		c.tool("read", nil)
		return take("in", ids[:min(len(ids), e.Batch)])
	case "consumers.order.mutate":
		ids := dataOf(c.req.Args[0])
		if e.Fickle && time.Now().UnixMicro()%2 == 0 {
			ids = append(ids, "more-"+ids[0])
		}
		c.tool(e.Method, ids)
		return nil
	case "consumers.order.next":
		for _, id := range dataOf(c.req.Args[0]) {
			c.publish("out", toldOf(id), "")
		}
		return nil
	case "consumers.tell.prepare":
		ids := c.peek("out")
		out := take("out", ids[:min(len(ids), 1)])
		if e.Wakes && len(ids) > 0 {
			out["wakeAt"] = time.Now().Add(31 * time.Second).UTC().Format(time.RFC3339Nano)
		}
		return out
	}
	panic(errors.New("no handler " + c.req.Handler))
}
