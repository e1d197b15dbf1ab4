package prune

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/retention"
)

// Receipts of all accounts go, the first one's and those after it.
func TestReceiptsOfEveryAccountGo(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.exec(`insert into users (id, name, role, created_at) values ('u', 'u', 'admin', 0)`)
		for _, account := range []string{"a", "b", "c"} {
			k.exec(`insert into billing_accounts (id, owner_id, name, created_at) values ($1, 'u', $1, 0)`, account)
			for name, days := range map[string]float64{"old": 100, "young": 1} {
				k.exec(`insert into charge_receipts (id, billing_account_id, run_id, attempt, source_system, source_reference, executor, amount, created_at) values ($1, $2, $1, 1, 's', $1, 'e', 1, $3)`, account+name, account, ago(days))
			}
		}
		k.keeps("receipts=30d")
		k.prune()
		k.left("id", "charge_receipts", "ayoung", "byoung", "cyoung")
	})
}

// How large lanes are is told by what is in the tables that grow; what of it is of a
// lane that is gone, by what it was called.
func TestStorageOfLanes(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		for n := range 40 {
			k.run(row{id: number(n), days: 1})
		}
		for n := range 10 {
			k.run(row{id: number(100 + n), days: 1, kind: "source", lane: "gone"})
		}
		out, err := k.s.Storage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if out.Database != k.db.Name() || out.Bytes <= 0 || len(out.Keep) == 0 || out.PerDay != 0 || !out.FullAt.IsZero() {
			t.Errorf("the database is %s, %d bytes, keeps %v, is full at %v", out.Database, out.Bytes, out.Keep, out.FullAt)
		}
		found := map[string]LaneSize{}
		for _, l := range out.Lanes {
			found[l.Name] = l
		}
		w, gone := found["w"], found["gone"]
		if w.Lane.Kind != pawl.KindWorkflow || w.Rows < 40 || w.Bytes <= 0 || gone.Lane.Kind != pawl.KindSource || gone.Rows < 10 || gone.Bytes <= 0 || w.Rows <= gone.Rows {
			t.Errorf("lanes: %+v", out.Lanes)
		}
	})
}

// How much it grows is told by a size of an hour ago at least, and not by a later one.
func TestGrowthIsToldWhenItIsKnown(t *testing.T) {
	both(t, func(t *testing.T, k *kit) {
		k.run(row{id: "r", days: 1})
		for age, known := range map[time.Duration]bool{10 * time.Minute: false, 12 * time.Hour: true} {
			at := time.Now().Add(-age)
			k.exec(`delete from storage_days`)
			k.exec(`insert into storage_days (name, day, at, row_count, bytes) values ('runs', $1, $2, 0, 0)`, time.Now().Unix()/86400, at.UnixMilli())
			out, err := k.s.Storage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range out.Tables {
				if table.Name != "runs" {
					continue
				}
				if want := table.Bytes * 2; known && (table.PerDay < want*9/10 || table.PerDay > want*11/10) || !known && table.PerDay != 0 {
					t.Errorf("after %v: %d bytes of %d a day", age, table.PerDay, table.Bytes)
				}
				if out.PerDay != table.PerDay {
					t.Errorf("in all: %d", out.PerDay)
				}
				// Where somebody can tell what room there is, it is full when that is used up.
				if full := known && out.Room >= 0; out.FullAt.IsZero() == full || full && out.FullAt.Before(time.Now()) {
					t.Errorf("after %v: full at %v", age, out.FullAt)
				}
			}
		}
	})
}

// Steps get smaller when they take long, and larger when they do not, within bounds.
func TestStepsAdaptToWhatTheyTake(t *testing.T) {
	p := &pass{Service: New(Config{})}
	size := func(times int, took time.Duration) int {
		for range times {
			p.adapt("x", took)
		}
		return p.rows("x")
	}
	usual := p.rows("x")
	if n := size(1, stepTime/2); n != usual {
		t.Errorf("as it should be: %d rows, not %d", n, usual)
	}
	if n := size(1, stepTime/10); n != 2*usual {
		t.Errorf("quick: %d rows, not %d", n, 2*usual)
	}
	if n := size(20, 0); n != mostRows {
		t.Errorf("as many as %d", n)
	}
	if n := size(1, 2*stepTime); n != mostRows/2 {
		t.Errorf("slow: %d rows", n)
	}
	if n := size(20, time.Minute); n != fewRows {
		t.Errorf("as few as %d", n)
	}
}

// What is removed is counted where somebody asks for it.
func TestRemovedRowsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	New(Config{Metrics: registry})
	all, err := registry.Gather()
	if err != nil || len(all) != 2 || all[0].GetName() != "pawl_retention_removed_bytes_total" || all[1].GetName() != "pawl_retention_removed_rows_total" {
		t.Fatalf("%v %v", all, err)
	}
	for _, family := range all { // every kind, before anything of it is removed
		if n := len(family.GetMetric()); n != len(retention.Kinds()) {
			t.Errorf("%s has %d lines", family.GetName(), n)
		}
	}
}

// A result is the sum of what was removed of every kind.
func TestAResultIsASum(t *testing.T) {
	r := Result{Removed: []Removed{{Rows: 1, Bytes: 10}, {Rows: 2, Bytes: 30}}}
	if r.Rows() != 3 || r.Bytes() != 40 {
		t.Errorf("%d rows, %d bytes", r.Rows(), r.Bytes())
	}
}

// What is kept for ever is kept for ever, whatever is added to it.
func TestLaterThanForeverIsForever(t *testing.T) {
	if got := later(retention.Forever, time.Hour); got != retention.Forever {
		t.Errorf("for ever and an hour is %v", got)
	}
	if got := later(time.Hour, time.Minute); got != 61*time.Minute {
		t.Errorf("an hour and a minute is %v", got)
	}
}
