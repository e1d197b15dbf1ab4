package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tryOut writes a workflow with a connection into a folder and runs pawl test.
func tryOut(t *testing.T, script string, args ...string) (dir string, r result) {
	t.Helper()
	dir = folder(t, map[string]string{
		"w.workflow.ts":         script,
		"tools/c.yaml":          "kind: connection\nname: box\ntype: file\nroot: ./box\n",
		"tools/box/one.txt":     "first",
		"tools/box/sub/two.txt": "second",
	})
	return dir, call{dir: dir}.run(t, append([]string{"test", "w.workflow.ts", "--connection-dir", "tools"}, args...)...)
}

const tryable = `export default {
  name: "tryable", topics: { a: {}, b: {} },
  producers: { look: { publishes: ["a"], schedule: { interval: "1h" }, async handler(ctx) {
    const { items } = await ctx.tools.box.list({});
    for (const f of items.filter((f) => f.type === "file")) {
      const inputId = ctx.registerInput({ source: "box", type: "file", id: f.name, title: "File " + f.name });
      ctx.publish("a", { messageId: f.name, inputId, payload: f.size });
    }
    return { looked: true };
  } } },
  consumers: { act: { subscribe: ["a"], publishes: ["b"],
    async prepare(ctx) {
      const [e] = await ctx.peek("a");
      if (!e) return { reservations: [], data: null };
      return { reservations: [{ topic: "a", ids: [e.messageId] }], data: e.messageId };
    },
    async mutate(ctx, p) { await ctx.tools.box.write({ path: "out.txt", text: p.data }); },
    next(ctx, p, r) { ctx.log("told", r); if (p.data) ctx.publish("b", { messageId: p.data, payload: r.result }); },
  } },
};`

// A workflow is tried out with real reads, and the call that it would make is
// shown and not made.
func TestTryShowsWhatWouldHappen(t *testing.T) {
	dir, r := tryOut(t, tryable, "--result", `{"size":5}`)
	r.expect(t, 0)
	for _, want := range []string{
		"producer look", "found       File one.txt (box/file one.txt)", "publishes   a one.txt 5", `remembers   {"looked":true}`,
		"consumer act", "takes       a one.txt", `would call  box.write {"path":"out.txt","text":"one.txt"} (policy: ask)`, `publishes   b one.txt {"size":5}`,
		`logs        told {"status":"applied","result":{"size":5}}`, "takes       nothing",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no line %q in:\n%s", want, r.stdout)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tools", "box", "out.txt")); err == nil {
		t.Error("the call was made")
	}
}

func TestTryFailsWithThePlace(t *testing.T) {
	_, r := tryOut(t, strings.Replace(tryable, "const [e] = await", "null.x; const [e] = await", 1), "--event", `a={"n":1}`)
	if r.expect(t, 1); !strings.Contains(r.stdout, "FAILED      w.workflow.ts:13:") {
		t.Errorf("no place in:\n%s", r.stdout)
	}
	for _, test := range []struct {
		script, event string
		code          int
		word          string
	}{
		{tryable, "a", 2, "TOPIC=JSON"},
		{tryable, "c=1", 1, `there is no topic "c"`},
		{"export default {", "a=1", 1, "w.workflow.ts:1:"},
	} {
		_, r := tryOut(t, test.script, "--event", test.event)
		r.expect(t, test.code, test.word)
	}
}
