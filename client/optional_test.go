package client

import (
	"encoding/json"
	"testing"
)

func TestGivenTellsAbsentFromNull(t *testing.T) {
	for text, want := range map[string]struct{ key, balance Optional[string] }{
		`{}`: {}, `{"keyRef":null}`: {key: Optional[string]{Set: true}}, `{"balanceUsd":null}`: {balance: Optional[string]{Set: true}},
		`{"keyRef":"${A}","balanceUsd":1.5}`: {Optional[string]{Set: true, Value: new("${A}")}, Optional[string]{Set: true, Value: new("1.5")}},
	} {
		var in AccountPatch
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			t.Fatal(err)
		}
		if in.KeyRef.Set != want.key.Set || in.BalanceUSD.Set != want.balance.Set || (in.KeyRef.Value == nil) != (want.key.Value == nil) || (in.BalanceUSD.Value == nil) != (want.balance.Value == nil) {
			t.Errorf("%s is read as %+v", text, in)
		}
		if want.key.Value != nil && (*in.KeyRef.Value != *want.key.Value || in.BalanceUSD.Value.String() != *want.balance.Value) {
			t.Errorf("%s is read as %+v", text, in)
		}
		if raw, err := json.Marshal(in); string(raw) != text || err != nil {
			t.Errorf("%s is written as %s, %v", text, raw, err)
		}
	}
	var in AccountPatch
	if json.Unmarshal([]byte(`{"keyRef":7}`), &in) == nil {
		t.Error("a number is a key reference")
	}
}
