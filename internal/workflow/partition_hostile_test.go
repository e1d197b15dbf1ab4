package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

func TestAPathLeadsToThePartition(t *testing.T) {
	event := eventstore.Event{Topic: "in", MessageID: "m-1", Payload: json.RawMessage(
		`{"customer":{"id":"acme","n":42,"big":12345678901234567890,"none":null,"list":["x",{"y":"z"}],"":"e"},"empty":"","long":"` + strings.Repeat("x", 1<<20) + `","nul":"a\u0000b"}`)}
	for _, c := range []struct{ path, want, fault string }{
		{"payload.customer.id", "acme", ""},
		{"payload.customer.n", "42", ""},
		{"payload.customer.big", "12345678901234567890", ""},
		{"payload.customer.list.0", "x", ""},
		{"payload.customer.list.1.y", "z", ""},
		{"messageId", "m-1", ""},
		{"topic", "in", ""},
		{"payload.customer.none", "", "must be a string or a number, not null"},
		{"payload.customer", "", "must be a string or a number, not an object"},
		{"payload.customer.list", "", "must be a string or a number, not a list"},
		{"payload.customer.list.2", "", `payload.customer.list is a list of 2 and has no "2"`},
		{"payload.customer.list.-1", "", "has no"},
		{"payload.customer.gone", "", `payload.customer has no "gone"`},
		{"payload.customer.id.x", "", `payload.customer.id is a string and has no "x"`},
		{"payload.toString", "", `payload has no "toString"`},
		{"payload.empty", "", "it is empty"},
		{"payload.long", "", "it has 1048576 bytes; at most 512 are allowed"},
		{"payload.nul", "", "a character that cannot be stored"},
	} {
		name, fault, err := (&Service{}).partitionOf(t.Context(), Consumer{Name: "c", Partition: c.path}, nil, "", event)
		if err != nil || name != c.want || !strings.Contains(fault, c.fault) || (fault == "") != (c.fault == "") || len(fault) > 1000 {
			t.Errorf("%s leads to %q, %.200q (%v)", c.path, name, fault, err)
		}
	}
}

// byFunction is shopDefinition with a function that does to each event what its payload
// says.
func byFunction() definition {
	d := shopDefinition().with(map[string]goHandler{
		"consumers.order.partition": func(c *goCtx, args []json.RawMessage) any {
			var e struct{ Payload struct{ Customer string } }
			if err := json.Unmarshal(args[0], &e); err != nil || len(args) != 1 {
				panic(fmt.Sprint("the function gets ", args))
			}
			switch e.Payload.Customer {
			case "throws":
				throw("no idea")
			case "object":
				return map[string]any{"a": 1}
			case "number":
				return 7
			case "nothing":
				return nothing{}
			case "null":
				return nil
			case "empty":
				return ""
			case "long":
				return strings.Repeat("x", 1<<20)
			case "calls":
				c.tool("desk", "order", "stolen")
			}
			return e.Payload.Customer
		},
	})
	d.config.Consumers[0].Partition = ""
	return d
}

// What has no partition is told, with the event and what is wrong, holds back nobody
// else, and goes on when its event is corrected, or its script.
func TestEventsWithoutAPartitionHoldBackNobodyElse(t *testing.T) {
	for _, c := range []struct{ customer, says string }{
		{"throws", "no idea"},
		{"object", "partition must return a string, not an object"},
		{"number", "partition must return a string, not a number"},
		{"nothing", "partition returned nothing; it must return a string"},
		{"null", "partition must return a string, not null"},
		{"empty", "it is empty"},
		{"long", "it has 1048576 bytes; at most 512 are allowed"},
		{"calls", "partition is a function of the event and calls nothing"},
	} {
		t.Run(c.customer, func(t *testing.T) {
			inTime(t, func(t *testing.T, k *kit) {
				w := k.deploy("shop", "1", byFunction())
				b := newBoard(k)
				k.send(w, c.customer, "bad")
				k.send(w, "a", "a1")
				b.finish()
				k.checkParts(w, 0)
				if got := k.desk.things(); !slices.Equal(got, []string{"a1"}) {
					t.Errorf("orders: %v", got)
				}
				y := k.why()
				if y.State != run.NeedsAttention || !strings.HasPrefix(y.Sentence, "Events of order without a partition: The script failed") ||
					!strings.Contains(y.Sentence, `event "bad" of topic "in" has no partition`) || !strings.Contains(y.Sentence, c.says) {
					t.Errorf("%s: %s", y.State, y.Sentence)
				}
				k.send(w, "b", "bad") // the same event, corrected
				b.finish()
				if got := k.desk.things(); !slices.Equal(got, []string{"a1", "bad"}) {
					t.Errorf("orders after a correction: %v", got)
				}
				k.resume("shop")
				b.finish()
				k.checkParts(w, 0)
				if y := k.why(); y.State != run.Idle {
					t.Errorf("at last: %s: %s", y.State, y.Sentence)
				}
			})
		})
	}
}

// An event whose payload is replaced while it waits goes to the partition that it has
// now; those that wait go to other partitions with another version.
func TestEventsAreSortedAnew(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", throwsFor("a1"))
		b := newBoard(k)
		k.send(w, "a", "a1")
		k.send(w, "a", "x")
		b.finish()
		k.send(w, "b", "x")
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"x"}) || len(k.runsOf(w, "b")) != 1 {
			t.Errorf("orders: %v", got)
		}
		d := shopDefinition()
		d.config.Consumers[0].Partition = "messageId"
		k.send(w, "a", "y")
		b.finish()
		k.deploy("shop", "2", d)
		b.finish()
		k.checkParts(w, 0)
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "x", "y"}) || len(k.runsOf(w, "y")) != 1 || len(k.runsOf(w, "a1")) != 1 {
			t.Errorf("orders: %v\n%v", got, k.story(w))
		}
		k.deploy("shop", "3", orderDefinition()) // and without partitions
		k.send(w, "a", "z")
		b.finish()
		if got := k.desk.things(); !slices.Equal(got, []string{"a1", "x", "y", "z"}) {
			t.Errorf("orders: %v\n%v", got, k.story(w))
		}
		if got := k.runs(w); got[len(got)-1].Lane != w.Lane {
			t.Errorf("the last run is in %s", got[len(got)-1].Lane)
		}
		k.checkParts(w, 0)
	})
}

// A script cannot reserve what is of another partition.
func TestAnEventOfAnotherPartitionCannotBeReserved(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		w := k.deploy("shop", "1", shopDefinition().with(map[string]goHandler{
			"consumers.order.prepare": func(c *goCtx, _ []json.RawMessage) any {
				if slices.Contains(c.peek("in"), "a1") {
					return take("in", "b1")
				}
				return take("in")
			},
		}))
		b := newBoard(k)
		k.send(w, "b", "b1")
		k.send(w, "a", "a1")
		b.finish()
		runs := k.runsOf(w, "a")
		if len(runs) == 0 || runs[len(runs)-1].Status != pawl.StatusFailedLogic || !strings.Contains(runs[len(runs)-1].ErrorMessage, "another partition") {
			t.Errorf("runs of a: %+v", runs)
		}
		if got := k.statuses(w, "in"); got["b1"] != eventstore.EventPending {
			t.Errorf("events: %v", got)
		}
	})
}

// What a script says about partitions is checked when it is deployed.
func TestPartitionsAreCheckedAtDeploy(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for _, c := range []struct {
			says   string
			change func(c []Consumer)
		}{
			{`partition is "customerId", which leads to nothing that an event has`, func(c []Consumer) { c[0].Partition = "customerId" }},
			{`partition is "payload..x", which has an empty step`, func(c []Consumer) { c[0].Partition = "payload..x" }},
			{"partitionLimit must be a whole number from 1 to 1000", func(c []Consumer) { c[0].Partition, c[0].PartitionLimit = "payload.c", 1001 }},
			{"it has partitionLimit but no partition", func(c []Consumer) { c[0].PartitionLimit = 3 }},
			{`it has partition, but "tell" subscribes to topic "in" too`, func(c []Consumer) { c[0].Partition, c[1].Subscribe = "payload.c", []string{"in"} }},
		} {
			d := orderDefinition()
			d.config.Consumers = slices.Clone(d.config.Consumers)
			c.change(d.config.Consumers)
			_, err := k.s.Apply(t.Context(), Deploy{Filename: "w.ts", Script: k.define("bad", c.says, d), By: "tester"})
			if e, ok := errors.AsType[*pawl.Error](err); !ok || !strings.Contains(fmt.Sprint(e.Fields), c.says) {
				t.Errorf("%s: %v", c.says, err)
			}
		}
	})
}
