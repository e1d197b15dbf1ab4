package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/grant"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// counts are the rows of the tables that creating a schedule writes to.
func (k *kit) counts() []string {
	k.t.Helper()
	return k.column(`select count(*) || '' from schedules union all select count(*) || '' from execution_grants union all
		select count(*) || '' from schedule_runs union all select count(*) || '' from jobs union all select count(*) || '' from schedule_versions`)
}

// C-05, C-27, C-28, C-29, C-31, C-38, C-46, C-53, X-51: creating a schedule makes
// its grant, its first slot in the future and the job of that slot, whose key is
// schedule and instant.
func TestCreateMakesGrantSlotAndJob(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		in := ask("digest", "")
		in.Cron, in.Timezone, in.Labels = "30 7 * * *", "Europe/Berlin", map[string]string{"team": "a"}
		sch := k.create(in)
		want := time.Date(2000, 1, 1, 6, 30, 0, 0, time.UTC)
		if !sch.NextRunAt.Equal(want) || !sch.LastRunAt.IsZero() || !sch.Enabled || sch.Policy != "Queue" || sch.OwnerUserID != k.owner {
			t.Errorf("the schedule is %+v, want the first slot at %s", sch, want)
		}
		k.wantStory(sch, "06:30 pending")
		job := k.column(`select task || ' ' || key || ' ' || lane || ' ' || run_at || ' ' || payload from jobs`)
		key := sch.ID + ":2000-01-01T06:30:00.000Z"
		if want := TaskName + " " + key + " " + sch.ID + " 946708200000 " + `{"scheduleId":"` + sch.ID + `","scheduledFor":"2000-01-01T06:30:00.000Z"}`; len(job) != 1 || job[0] != want {
			t.Errorf("the job is %v, want %s", job, want)
		}
		if got := k.counts(); !slices.Equal(got, []string{"1", "1", "1", "1", "1"}) {
			t.Errorf("the tables have %v rows, want one each", got)
		}
		k.read(func(ctx context.Context, tx *store.Tx) error {
			g, err := grant.Service{}.Get(ctx, tx, k.owner, sch.GrantID)
			if err != nil || !g.Automatic || len(g.Scopes) != 1 || !strings.HasSuffix(g.Scopes[0], "x:poet") {
				t.Errorf("the grant is %+v (%v), want one for this graph alone", g, err)
			}
			return nil
		})
	})
}

// C-26, C-28: nothing is written when anything is wrong, and every fault is
// told with its place.
func TestCreateIsAllOrNothing(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		before := k.counts()
		bad := client.ScheduleRequest{
			Name: "no spaces", GraphID: "poet", Cron: "61 * * * *", Timezone: "Mars/Base", Input: json.RawMessage("{"), ConcurrencyPolicy: "Maybe",
		}
		e := k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Create(ctx, tx, k.owner, bad, "t")
			return err
		})
		var places []string
		for _, f := range e.Fields {
			places = append(places, f.Pointer)
		}
		if want := []string{"/name", "/graphId", "/input", "/concurrencyPolicy", "/timezone", "/cron"}; e.Code != pawl.CodeInvalid || !slices.Equal(places, want) {
			t.Errorf("faults at %v (%s), want %v", places, e.Code, want)
		}
		k.s.Attach(broken{})
		e = k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Create(ctx, tx, k.owner, ask("a", ""), "t")
			return err
		})
		if e.Code != pawl.CodeUnavailable {
			t.Errorf("without a queue: %v", e)
		}
		k.s.Attach(table{})
		if got := k.counts(); !slices.Equal(got, before) {
			t.Errorf("a create that failed left %v rows, before %v", got, before)
		}
		k.create(ask("a", ""))
		before = k.counts()
		e = k.try(func(ctx context.Context, tx *store.Tx) error {
			_, err := k.s.Create(ctx, tx, k.owner, ask("a", ""), "t")
			return err
		})
		if e.Reason != "name_taken" || !slices.Equal(k.counts(), before) {
			t.Errorf("a name that is taken: %v, rows %v, before %v", e, k.counts(), before)
		}
	})
}

// broken is a queue that takes nothing.
type broken struct{}

func (broken) EnqueueTx(context.Context, *store.Tx, ...store.JobSpec) ([]store.Job, error) {
	return nil, &pawl.Error{Code: pawl.CodeUnavailable, Msg: "the queue is away"}
}

// C-30, C-66, X-57: a schedule may name a grant of its owner that allows the
// graph; of another one, one that is gone or another graph's is told why.
func TestCreateChecksTheGrantThatIsNamed(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		make := func(owner, graph string) (id string) {
			k.write(func(ctx context.Context, tx *store.Tx) error {
				g, err := grant.Service{}.Create(ctx, tx, owner, grant.Spec{Scopes: []string{grant.ScopeFor(graph)}, ExpiresAt: tx.Now.Add(time.Hour)})
				id = g.ID
				return err
			})
			return id
		}
		good, other, foreign := make(k.owner, "x:poet"), make(k.owner, "x:other"), make(k.user("eve"), "x:poet")
		for id, want := range map[string]contract.ErrorCode{"none": contract.GrantNotFound, other: contract.GrantScope, foreign: contract.GrantNotFound} {
			in := ask("s", "")
			in.ExecutionGrantID = id
			e := k.try(func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Create(ctx, tx, k.owner, in, "t")
				return err
			})
			if e.Code != pawl.CodeInvalid || e.Reason != string(want) || len(e.Fields) != 1 || e.Fields[0].Pointer != "/executionGrantId" {
				t.Errorf("%+v, want %s", e, want)
			}
		}
		in := ask("s", "")
		in.ExecutionGrantID = good
		if sch := k.create(in); sch.GrantID != good {
			t.Errorf("it runs under %s, want %s", sch.GrantID, good)
		}
	})
}

// context 3.18: what belongs to somebody else looks as if it were not there.
func TestForeignSchedulesAreNotFound(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		sch, eve := k.create(ask("s", "")), k.user("eve")
		before := k.counts()
		var b schedulestore.Backfill
		k.write(func(ctx context.Context, tx *store.Tx) (err error) {
			b, err = k.s.PlanBackfill(ctx, tx, k.owner, sch.ID, BackfillAsk{From: tx.Now.Add(-time.Hour), To: tx.Now}, "t")
			return err
		})
		for name, try := range map[string]store.Func{
			"read": func(ctx context.Context, tx *store.Tx) error { _, err := k.s.Owned(ctx, tx, eve, sch.ID); return err },
			"update": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Update(ctx, tx, eve, sch.ID, client.SchedulePatch{}, "e")
				return err
			},
			"delete": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Delete(ctx, tx, eve, sch.ID, "e")
				return err
			},
			"run": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.RunNow(ctx, tx, eve, sch.ID, "e")
				return err
			},
			"plan": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.PlanBackfill(ctx, tx, eve, sch.ID, BackfillAsk{From: tx.Now.Add(-time.Hour), To: tx.Now}, "e")
				return err
			},
			"confirm": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Confirm(ctx, tx, eve, b.ID, b.Hash, "e")
				return err
			},
			"cancel": func(ctx context.Context, tx *store.Tx) error {
				_, err := k.s.Move(ctx, tx, eve, b.ID, BackfillCancelled, "e")
				return err
			},
			"look": func(ctx context.Context, tx *store.Tx) error {
				_, _, _, err := k.s.Backfill(ctx, tx, eve, b.ID)
				return err
			},
		} {
			if e := k.try(try); e.Code != pawl.CodeNotFound {
				t.Errorf("%s: %v", name, e)
			}
		}
		if _, err := k.s.Describe(t.Context(), eve, sch.ID); !errors.Is(err, pawl.ErrNotFound) {
			t.Errorf("describe: %v", err)
		}
		if list, _, err := k.s.List(t.Context(), lane.Query{Owner: eve, Limit: 10}); err != nil || len(list) != 0 {
			t.Errorf("a foreign list has %d schedules (%v)", len(list), err)
		}
		if !slices.Equal(k.counts(), before) {
			t.Errorf("a stranger changed something: %v, before %v", k.counts(), before)
		}
	})
}

// The same definition changes nothing; another one of the name changes the
// schedule and keeps its id.
func TestApplyMakesOrChangesOnce(t *testing.T) {
	inTime(t, func(t *testing.T, k *kit) {
		apply := func(in client.ScheduleRequest) (what string, now schedulestore.Schedule) {
			k.write(func(ctx context.Context, tx *store.Tx) (err error) {
				what, _, now, err = k.s.Apply(ctx, tx, k.owner, in, "t")
				return err
			})
			return what, now
		}
		in := ask("s", "")
		what, made := apply(in)
		in.Input = json.RawMessage(` { "n" : 1 } `)
		again, same := apply(in)
		in.Cron = "0 * * * *"
		changed, now := apply(in)
		if what != Created || again != Unchanged || changed != Updated || same.Revision != made.Revision || now.ID != made.ID || now.Revision != made.Revision+1 {
			t.Errorf("%s, %s and %s at revisions %d, %d and %d", what, again, changed, made.Revision, same.Revision, now.Revision)
		}
		k.wantStory(now, "00:01 skipped superseded", "01:00 pending")
	})
}
