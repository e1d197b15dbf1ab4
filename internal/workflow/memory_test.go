package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workflowstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// growth runs something and returns by how many bytes this process has grown
// at its largest. What is not held any more hardly counts.
func growth(work func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
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

// gluttony is a script that makes a large call several times at once.
type gluttony struct {
	call string
	n    int
	most uint64 // MiB; below what n answers take, above what those do that there is room for
	says string // why it fails; empty if it does not
}

func (g gluttony) script() string {
	return `export default { name: "glutton", topics: { in: {} }, consumers: { order: { subscribe: ["in"], async prepare(ctx) {
  const big = "z".repeat(2 << 20);
  const columns = (n, size) => "select " + Array.from({ length: n }, (_, i) => "zeroblob(" + size + ") as b" + i).join();
  await Promise.all(Array.from({ length: ` + strconv.Itoa(g.n) + ` }, () => ` + cmp.Or(g.call, "null") + `));
  return { reservations: [], data: null };
} } } }`
}

// bounded runs scripts and looks how far the process grows.
func (k *kit) bounded(t *testing.T, cases map[string]gluttony) {
	t.Helper()
	k.t = t
	w := k.deployScript("glutton", gluttony{}.script())
	k.publishLarge("glutton", 6)
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			k.t = t
			k.deployScript("glutton", test.script())
			grown := growth(func() {
				k.write(func(ctx context.Context, tx *store.Tx) error {
					return workflowstore.In(tx).SetWakeAt(ctx, w.ID, "order", tx.Now)
				})
				k.work(w)
			})
			r := k.runOf(w, "order")
			if test.says == "" && r.Status != pawl.StatusCommitted || !strings.Contains(r.ErrorMessage, test.says) || r.ErrorClass != "" && r.ErrorClass != pawl.ClassLogic {
				t.Errorf("the run is %s: %s", r.Status, r.ErrorMessage)
			}
			if grown>>20 > test.most {
				t.Errorf("the process grew by %d MiB, want at most %d", grown>>20, test.most)
			}
		})
	}
}

// publishLarge publishes events of a MiB each, m0 and so on.
func (k *kit) publishLarge(workflow string, n int) {
	k.t.Helper()
	payload := json.RawMessage(`"` + strings.Repeat("y", 1<<20) + `"`)
	k.write(func(ctx context.Context, tx *store.Tx) error {
		for i := range n {
			_, _, err := k.s.PublishExternal(ctx, tx, workflow, ExternalEvent{Topic: "in", MessageID: fmt.Sprint("m", i), Payload: payload}, "tester")
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Many large reads at once fill the memory of the server no more than a few do:
// the others wait.
func TestParallelLargeReadsAreBounded(t *testing.T) {
	pool := testPool(t)
	both(t, func(t *testing.T, k *kit) {
		k.s.cfg.Scripts, k.s.cfg.Limits = pool, script.Limits{Bytes: 1}
		k.bounded(t, map[string]gluttony{
			"peek":     {`ctx.peek("in").then((list) => list.length)`, 6, 50, ""},
			"getByIds": {`ctx.getByIds("in", ["m1", "m2", "m3", "m4", "m5"]).then((list) => list.length)`, 6, 50, ""},
		})
	})
}

// What tools answer and take is bounded in the same way.
func TestParallelLargeCallsOfToolsAreBounded(t *testing.T) {
	k := newKit(t, pgtest.SQLite(t))
	folder := t.TempDir()
	for name, content := range map[string]string{
		"crm.db":    "",
		"large.txt": strings.Repeat("x", 3<<20),
		"c.yaml":    "kind: connection\nname: crm\ntype: sql\nurl: sqlite:crm.db\nreadOnly: true\n---\nkind: connection\nname: disk\ntype: file\nroot: .\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tools, err := tool.Load(folder, tool.Env{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tools.Close() })
	k.s.cfg.Scripts, k.s.cfg.Tools = testPool(t), tools
	t.Run("as much as is allowed by default", func(t *testing.T) {
		k.s.cfg.Limits = script.Limits{}
		k.bounded(t, map[string]gluttony{
			"a wide row": {`ctx.tools.crm.query({ sql: columns(200, 160000) })`, 12, 200, "4 MiB"},
		})
	})
	k.s.cfg.Limits = script.Limits{Bytes: 1}
	k.bounded(t, map[string]gluttony{
		"files":           {`ctx.tools.disk.read({ path: "large.txt" }).then((file) => file.size)`, 12, 40, ""},
		"large blobs":     {`ctx.tools.crm.query({ sql: columns(1, 60000000) })`, 12, 40, "too big"},
		"many blobs":      {`ctx.tools.crm.query({ sql: columns(200, 8000000) })`, 12, 40, "too big"},
		"blobs that fit":  {`ctx.tools.crm.query({ sql: columns(1, 3000000) }).then(() => null)`, 6, 50, ""},
		"large arguments": {`ctx.tools.disk.read({ path: big })`, 4, 100, "path"},
	})
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
		k.publishLarge("large", 12)
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
