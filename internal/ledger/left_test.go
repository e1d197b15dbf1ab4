package ledger

import (
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// a run that this process had to leave because the database was away did
// not crash. It is recovered by the same table, and not counted, however often;
// with a class it stops as the failure says.
func TestWhatThisProcessLeftIsNoCrash(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		s := specOf(pawl.HandlerProducer, "left")
		r := k.begin(s)
		for range 5 {
			k.l.GaveUp(r.ID, Failure{})
			k.takeOver("a")
			o, err := k.l.RecoverLane(t.Context(), k.db, k.owner, s.Kind, s.Lane)
			if err != nil || o.Run.ID != r.ID || o.Run.Status != pawl.StatusCrashed || o.Run.ErrorCode != "interrupted" || o.Successor.ID == "" {
				t.Fatalf("%+v, %v", o, err)
			}
			r = o.Successor
		}
		if n := k.retry(s).Crashes; n != 0 {
			t.Errorf("%d crashes are counted", n)
		}
		k.takeOver("b") // which gave up nothing
		if o, err := k.l.RecoverLane(t.Context(), k.db, k.owner, s.Kind, s.Lane); err != nil || o.Retry.Crashes != 1 || o.Run.ErrorCode != "" {
			t.Errorf("%+v, %v", o, err)
		}

		s = specOf(pawl.HandlerSource, "put-off")
		r = k.begin(s)
		k.l.GaveUp(r.ID, Failure{Class: pawl.ClassTransient, Code: "interrupted", Message: "away", Deferred: true})
		k.takeOver("c")
		o, err := k.l.RecoverLane(t.Context(), k.db, k.owner, s.Kind, s.Lane)
		if err != nil || o.Run.Status != pawl.StatusPausedTransient || o.Run.ErrorCode != "interrupted" || o.Successor.ID != "" {
			t.Errorf("%+v, %v", o, err)
		}
		if got := k.retry(s); got.Crashes != 0 || got.Count != 0 || !got.NextAt.IsZero() {
			t.Errorf("%+v", got)
		}
		if _, known := k.l.gaveUp(r.ID); known {
			t.Error("it is not forgotten")
		}
	})
}

// What is remembered does not grow without end.
func TestWhatIsLeftIsBounded(t *testing.T) {
	l := New(Config{})
	l.GaveUp("", Failure{})
	for i := range 2*mostLeft + 1 {
		l.GaveUp(string(rune('a'+i%26))+string(rune(i)), Failure{})
	}
	if n := len(l.left.runs); n == 0 || n > mostLeft {
		t.Errorf("%d are remembered", n)
	}
}
