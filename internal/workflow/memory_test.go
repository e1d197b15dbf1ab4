package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// growth runs something and returns by how many bytes this process has grown
// at its largest.
func growth(work func()) uint64 {
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	most := before.HeapInuse
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapInuse)
			}
		}
	}()
	work()
	close(stop)
	<-done
	return most - before.HeapInuse
}

// mostGrowth is far below what 32 large answers at once take, and far above
// what those take that there is room for.
const mostGrowth = 400 << 20

// Many large reads at once fill the memory of the server no more than a few do:
// the others wait.
func TestParallelLargeReadsAreBounded(t *testing.T) {
	pool := testPool(t)
	both(t, func(t *testing.T, k *kit) {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "crm.db"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "large.txt"), []byte(strings.Repeat("x", 3<<20)), 0o600); err != nil {
			t.Fatal(err)
		}
		definition := "kind: connection\nname: crm\ntype: sql\nurl: sqlite:crm.db\nreadOnly: true\n---\nkind: connection\nname: disk\ntype: file\nroot: .\n"
		if err := os.WriteFile(filepath.Join(folder, "c.yaml"), []byte(definition), 0o600); err != nil {
			t.Fatal(err)
		}
		tools, err := tool.Load(folder, tool.Env{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tools.Close() })
		k.s.cfg.Scripts, k.s.cfg.Limits, k.s.cfg.Tools = pool, script.Limits{}, tools
		const head, tail = `export default { name: "glutton", topics: { in: {} }, consumers: { order: { subscribe: ["in"], async prepare(ctx) {
  const all = (make) => Promise.all(Array.from({ length: 32 }, make));
  `, `
  return { reservations: [], data: null };
} } } }`
		w := k.deployScript("glutton", head+tail)
		k.write(func(ctx context.Context, tx *store.Tx) error {
			for i := range 6 {
				_, _, err := k.s.PublishExternal(ctx, tx, "glutton", ExternalEvent{Topic: "in", MessageID: fmt.Sprint("m", i), Payload: json.RawMessage(fmt.Sprintf("%q", strings.Repeat("y", 1<<20)))}, "tester")
				if err != nil {
					return err
				}
			}
			return nil
		})
		for name, test := range map[string]struct {
			body string
			says string // why it fails; empty if it does not
		}{
			"peek":            {`await all(async () => (await ctx.peek("in")).length);`, ""},
			"getByIds":        {`await all(async () => (await ctx.getByIds("in", ["m1", "m2", "m3", "m4", "m5"])).length);`, ""},
			"files":           {`await all(async () => (await ctx.tools.disk.read({ path: "large.txt" })).size);`, ""},
			"large blobs":     {`await all(() => ctx.tools.crm.query({ sql: "select zeroblob(60000000) as b" }));`, "too big"},
			"many blobs":      {`await all(() => ctx.tools.crm.query({ sql: "select " + Array.from({ length: 200 }, (_, i) => "zeroblob(8000000) as b" + i).join() }));`, "too big"},
			"a wide row":      {`await all(() => ctx.tools.crm.query({ sql: "select " + Array.from({ length: 200 }, (_, i) => "zeroblob(160000) as b" + i).join() }));`, "4 MiB"},
			"blobs that fit":  {`await all(async () => { await ctx.tools.crm.query({ sql: "select zeroblob(3000000) as b" }); });`, ""},
			"large arguments": {`const big = "z".repeat(6 << 20); await all(() => ctx.tools.disk.read({ path: big }));`, "path"},
		} {
			t.Run(name, func(t *testing.T) {
				k.t = t
				k.deployScript("glutton", head+test.body+tail)
				grown := growth(func() { k.runGlutton(w) })
				r := k.runOf(w, "order")
				if test.says == "" && r.Status != pawl.StatusCommitted || !strings.Contains(r.ErrorMessage, test.says) || r.ErrorClass != "" && r.ErrorClass != pawl.ClassLogic {
					t.Errorf("the run is %s: %s", r.Status, r.ErrorMessage)
				}
				if grown > mostGrowth {
					t.Errorf("the process grew by %d MiB", grown>>20)
				}
			})
		}
	})
}

func (k *kit) runGlutton(w workflowstore.Workflow) {
	k.t.Helper()
	k.write(func(ctx context.Context, tx *store.Tx) error {
		return workflowstore.In(tx).SetWakeAt(ctx, w.ID, "order", tx.Now)
	})
	k.work(w)
}

// One answer has a limit, which is met while it is read and not after; so have
// the arguments of a call that changes something, before it is written down.
func TestLargeAnswersAndArgumentsAreRefused(t *testing.T) {
	pool := testPool(t)
	both(t, func(t *testing.T, k *kit) {
		k.s.cfg.Scripts, k.s.cfg.Limits = pool, script.Limits{}
		script := func(prepare, mutate string) string {
			return `export default { name: "large", topics: { in: {} }, consumers: { order: { subscribe: ["in"],
  async prepare(ctx) { ` + prepare + ` return { reservations: [{ topic: "in", ids: ["m0"] }], data: null }; },
  async mutate(ctx) { ` + mutate + ` } } } }`
		}
		w := k.deployScript("large", script("throw new Error('not yet');", ""))
		k.write(func(ctx context.Context, tx *store.Tx) error {
			for i := range 12 {
				_, _, err := k.s.PublishExternal(ctx, tx, "large", ExternalEvent{Topic: "in", MessageID: fmt.Sprint("m", i), Payload: json.RawMessage(fmt.Sprintf("%q", strings.Repeat("y", 1<<20)))}, "tester")
				if err != nil {
					return err
				}
			}
			return nil
		})
		k.work(w)
		for _, test := range []struct{ prepare, mutate, says string }{
			{`await ctx.peek("in");`, "", "peek: the events have more than the 7 MiB that one call answers: ask for fewer"},
			{`await ctx.getByIds("in", Array.from({ length: 12 }, (_, i) => "m" + i));`, "", "getByIds: the events have more than the 7 MiB"},
			{"", `await ctx.tools.desk.order({ text: "z".repeat(5 << 20) });`, "takes at most 4 MiB"},
		} {
			k.deployScript("large", script(test.prepare, test.mutate))
			k.work(w)
			if r := k.runOf(w, "order"); r.Status != pawl.StatusFailedLogic || !strings.Contains(r.ErrorMessage, test.says) {
				t.Errorf("the run is %s: %s; want %s", r.Status, r.ErrorMessage, test.says)
			}
		}
		if n := len(k.ledgerRows(w)); n > 0 {
			t.Errorf("%d calls were written down", n)
		}
		k.deployScript("large", script(`await ctx.peek("in", { limit: 6 });`, `await ctx.tools.desk.order({ text: "z".repeat(3 << 20) });`))
		k.work(w)
		if list := k.ledgerRows(w); len(list) != 1 || list[0].State != pawl.MutationApplied {
			t.Errorf("what fits is refused: %s", k.runOf(w, "order").ErrorMessage)
		}
	})
}
