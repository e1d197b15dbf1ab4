package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
)

// shop is a connection that does nothing.
type shop struct{}

func (shop) Methods() []Method {
	return []Method{{Name: "order", Mutation: true}, {Name: "find"}}
}
func (shop) Call(context.Context, Call) (json.RawMessage, error) { return nil, nil }
func (shop) Reconcile(context.Context, Call) (Answer, error)     { return Answer{State: Later}, nil }

// surface, Connection: mutations default to ask, reads to allow.
func TestLookupFindsTheMethodAndItsPolicy(t *testing.T) {
	set, err := NewSet(
		Named{Name: "plain", Type: "shop", Connection: shop{}},
		Named{Name: "pinned", Type: "shop", Connection: shop{}, Policy: map[string]Policy{"order": Deny, "find": Ask}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		connection, method string
		policy             Policy
	}{
		{"plain", "order", Ask}, {"plain", "find", Allow}, {"pinned", "order", Deny}, {"pinned", "find", Ask},
	} {
		target, err := set.Lookup(test.connection, test.method)
		if err != nil || target.Name != test.connection || target.Method.Name != test.method || target.Policy != test.policy || target.Connection != (shop{}) {
			t.Errorf("Lookup(%s, %s) = %+v, %v", test.connection, test.method, target, err)
		}
	}
	want := []Info{
		{Name: "pinned", Type: "shop", Methods: []MethodInfo{{Method{Name: "find"}, Ask}, {Method{Name: "order", Mutation: true}, Deny}}},
		{Name: "plain", Type: "shop", Methods: []MethodInfo{{Method{Name: "find"}, Allow}, {Method{Name: "order", Mutation: true}, Ask}}},
	}
	if diff := cmp.Diff(want, set.Describe()); diff != "" {
		t.Error(diff)
	}
}

// context 3.8: what is not there is a logic error.
func TestLookupProposesWhatWasMeant(t *testing.T) {
	set, err := NewSet(Named{Name: "shop", Connection: shop{}}, Named{Name: "mail", Connection: shop{}})
	if err != nil {
		t.Fatal(err)
	}
	empty, err := NewSet()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		set                            *Set
		connection, method, code, hint string
	}{
		{set, "shpo", "find", "unknown_connection", "Did you mean shop?"},
		{set, "MAIL", "find", "unknown_connection", "Did you mean mail?"},
		{set, "weather", "find", "unknown_connection", "The connections are mail, shop."},
		{set, "", "find", "unknown_connection", "The connections are mail, shop."},
		{set, "shop", "fnid", "unknown_method", "Did you mean find?"},
		{set, "shop", "__proto__", "unknown_method", "The methods are find, order."},
		{set, "shop", strings.Repeat("\x00", 1000), "unknown_method", "The methods are find, order."},
		{empty, "shop", "find", "unknown_connection", "No connection is configured."},
		{new(Set), "shop", "find", "unknown_connection", "No connection is configured."},
	} {
		_, err := test.set.Lookup(test.connection, test.method)
		e, ok := errors.AsType[*Error](err)
		class := pawl.ClassLogic
		if test.code == "unknown_connection" { // another server may have it
			class = pawl.ClassPrecondition
		}
		if !ok || e.Class != class || e.Code != test.code || !strings.HasPrefix(e.Hint, test.hint) || len(e.Msg) > 500 {
			t.Errorf("Lookup(%q, %.20q) = %v, code %s, hint %q", test.connection, test.method, err, e.Code, e.Hint)
		}
	}
}

func TestNewSetRefusesWhatLoadWould(t *testing.T) {
	_, err := NewSet(
		Named{Name: "a", Connection: shop{}},
		Named{Name: "a", Connection: shop{}},
		Named{Name: "9", Connection: shop{}},
		Named{Name: "constructor", Connection: shop{}},
		Named{Name: strings.Repeat("x", 65), Connection: shop{}},
		Named{Name: "none"},
		Named{Name: "b", Connection: shop{}, Policy: map[string]Policy{"oder": Ask, "find": "alow"}},
	)
	want := []string{
		`connection "a": the name is taken`,
		`connection "9": the name "9" must begin`,
		`connection "constructor": the name "constructor" has a meaning`,
		`connection "` + strings.Repeat("x", 65) + `": the name`,
		`connection "none": it is not connected`,
		`connection "b": unknown policy "alow". Did you mean allow?`,
		`connection "b": there is no method "oder". Did you mean order?`,
	}
	got := fieldsOf(err)
	if len(got) != len(want) {
		t.Fatalf("the faults are\n%s", strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("fault %q\nwant  %q", got[i], want[i])
		}
	}
	if _, err := NewSet(Named{Name: strings.Repeat("x", 64), Connection: shop{}}); err != nil {
		t.Errorf("a name of 64 letters: %v", err)
	}
}
