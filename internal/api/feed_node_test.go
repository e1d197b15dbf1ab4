package api

import (
	"encoding/json"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/relay"
)

// What happened on another node is told to those who may know it and to nobody
// else, and what was lost on the way is told as lost.
func TestStreamTellsOfOtherNodesToThoseWhoMayKnow(t *testing.T) {
	t.Parallel()
	f := NewFeed()
	defer f.Close()
	f.Heard(relay.News{Events: []relay.Event{{Kind: "job", ID: "0", Data: json.RawMessage(`"early"`)}}}) // nobody follows
	all := follow(t, f, nil, "", 0)
	hers, ok := f.follow(view{map[pawl.Kind]string{pawl.KindSchedule: "alice"}, new("alice")}, nil, "", 0)
	if !ok {
		t.Fatal("no room")
	}
	f.Heard(relay.News{Events: []relay.Event{
		{Kind: "job", ID: "1", Data: json.RawMessage(`"of bob"`), Owner: new("bob")},
		{Kind: "job", ID: "2", Data: json.RawMessage(`"of pawl"`), Owner: new("")},
		{Kind: "job", ID: "3", Data: json.RawMessage(`"of alice"`), Owner: new("alice")},
		{Kind: "run", ID: "4", Data: json.RawMessage(`"of everybody"`)},
		{Kind: "run", ID: "5", Data: json.RawMessage(`"of a schedule"`), LaneKind: "schedule", LaneKey: "s1"},
	}})
	if got := drain(f, all); len(got) != 5 {
		t.Errorf("who may see everything got %v", got)
	}
	if got := strings.Join(drain(f, hers), " "); got != `"of alice" "of everybody"` {
		t.Errorf("before it is known whose the schedule is, alice got %s", got)
	}
	f.learn(map[laneKey]string{{pawl.KindSchedule, "s1"}: "bob"})
	if got := drain(f, hers); len(got) != 0 {
		t.Errorf("alice got %v of bob's schedule", got)
	}
	f.Heard(relay.News{Lost: 3})
	if got := string(f.take(hers)); !strings.Contains(got, `{"count":3,"atLeast":true}`) {
		t.Errorf("of what was lost on the way was told %q", got)
	}
}
