package execution

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pawlrun/pawl/internal/store/executionstore"
)

// Lesson 61, context 3.17.5: what means the same has the same hash, and nothing
// else has.
func TestHashIsOfTheCanonicalForm(t *testing.T) {
	hash := func(input string) string {
		h, err := requestHash("x:poet", "g", json.RawMessage(input))
		if err != nil {
			t.Fatalf("%s: %v", input, err)
		}
		return h
	}
	same := [][]string{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ] , "a" : 1 } `, `{"b":[true,null],"a":2,"a":1}`},
		{`{"o":{"x":{},"y":[]}}`, `{"o":{"y":[],"x":{}}}`},
		{`100`, `1e2`, `100.0`, `1E+2`, `0.1e3`, `10000e-2`},
		{`0`, `-0`, `0.0`, `0e9`},
		{`-1.5`, `-15e-1`, `-1.50`},
		{`12345678901234567890`, `12345678901234567890.0`},
		{`"é\n<"`, `"\u00e9\u000a\u003c"`},
	}
	seen := map[string]string{}
	for _, group := range same {
		for _, input := range group {
			if hash(input) != hash(group[0]) {
				t.Errorf("%s and %s differ", input, group[0])
			}
		}
		if other, known := seen[hash(group[0])]; known {
			t.Errorf("%s and %s are the same", group[0], other)
		}
		seen[hash(group[0])] = group[0]
	}
	for _, input := range []string{`null`, `""`, `[]`, `{}`, `[1,2]`, `[2,1]`, `"1"`, `1`, `12345678901234567891`, `1e99999999999`, `true`, `false`, `"null"`, `{"a":null}`, `{"b":null}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`} {
		if other, known := seen[hash(input)]; known {
			t.Errorf("%s and %s are the same", input, other)
		}
		seen[hash(input)] = input
	}
	for _, other := range [][2]string{{"x:poet", "g2"}, {"x:poets", "g"}, {"x:poe", "tg"}} {
		if h, _ := requestHash(other[0], other[1], json.RawMessage(`null`)); seen[h] != "" {
			t.Errorf("%v is the same", other)
		}
	}
	for _, bad := range []string{``, `{`, `1 2`, `{} x`} {
		if _, err := requestHash("x:poet", "g", json.RawMessage(bad)); err == nil {
			t.Errorf("%q has a hash", bad)
		}
	}
}

// Context 3.17.3: what a request means for what is stored under its key.
func TestJudgeAKnownKey(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	failed := executionstore.Execution{Hash: "h", Attempt: 1, Finished: true}
	unknown := failed
	unknown.Remote = memory{Unknown: true}.json()
	good := failed
	good.Outcome.OK = true
	alive := executionstore.Execution{Hash: "h", Attempt: 1, Owner: "o", LeaseUntil: now.Add(time.Millisecond)}
	dead := alive
	dead.LeaseUntil = now
	released := executionstore.Execution{Hash: "h", Attempt: 1, LeaseUntil: now.Add(time.Hour)}
	asks := executionstore.Execution{Hash: "h", Attempt: 1, Interrupt: json.RawMessage(`"?"`)}
	for _, c := range []struct {
		name    string
		stored  executionstore.Execution
		hash    string
		attempt int
		want    move
	}{
		{"other request, running", alive, "other", 0, moveRefuse},
		{"other request, finished", good, "other", 0, moveRefuse},
		{"other request, abandoned", dead, "other", 0, moveRefuse},
		{"running", alive, "h", 0, moveWait},
		{"running, later attempt", alive, "h", 2, moveWait},
		{"lease ended", dead, "h", 0, moveTake},
		{"lease ended, later attempt goes on with this one", dead, "h", 2, moveTake},
		{"given back", released, "h", 0, moveTake},
		{"waits for a person", asks, "h", 2, moveAnswer},
		{"succeeded", good, "h", 0, moveAnswer},
		{"succeeded, later attempt", good, "h", 2, moveAnswer},
		{"failed, no attempt named", failed, "h", 0, moveAnswer},
		{"failed, same attempt", failed, "h", 1, moveAnswer},
		{"failed, later attempt", failed, "h", 2, moveAgain},
		{"unknown, later attempt", unknown, "h", 2, moveAnswer},
	} {
		if got, err := judge(c.stored, c.hash, c.attempt, now); got != c.want || err != nil {
			t.Errorf("%s: %v %v", c.name, got, err)
		}
	}
}
