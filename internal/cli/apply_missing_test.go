package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// What is applied may need something that the server does not have, and the
// surprise would come when it is due: apply says so at once, with what to do, and
// applies it all the same. What is there is not spoken of.
func TestApplyWarnsOfWhatTheServerLacks(t *testing.T) {
	needs := map[string]string{
		"letters.workflow.js": `export default {
  name: "letters",
  topics: { t: {} },
  producers: { look: { publishes: ["t"], schedule: { interval: "1h" }, handler: async (ctx) => { await ctx.tools.inbox.list({}); } } },
  consumers: { take: { subscribe: ["t"], prepare: async (ctx) => ({ reservations: [], data: {} }), mutate: async (ctx) => {
    await ctx.tools.inbox.write({ path: "a", content: "b" });
    ctx.log("never");
  } } },
};
`,
		"poet.yaml": "kind: schedule\nname: poet\ngraph: agents:poet\ncron: \"0 8 * * *\"\n",
	}
	const connection, executor = `this server has no connection "inbox"`, `there is no executor "agents" for the graph agents:poet`
	for name, c := range map[string]struct {
		there map[string]string
		warns []string
		not   []string
	}{
		"neither": {map[string]string{"x": ""}, []string{"letters.workflow.js:4:", connection, "--connection-dir", "poet.yaml: warning: " + executor, "The executors are workflow."}, nil},
		"both": {map[string]string{
			"inbox.yaml":  "kind: connection\nname: inbox\ntype: file\nroot: ROOT\n",
			"agents.yaml": "kind: executor\nname: agents\ntype: http\ngraphs: {poet: {url: \"http://127.0.0.1:1/poet\"}}\n",
		}, nil, []string{connection, executor}},
		"another graph": {map[string]string{
			"agents.yaml": "kind: executor\nname: agents\ntype: http\ngraphs: {poems: {url: \"http://127.0.0.1:1/poet\"}}\n",
		}, []string{connection, `the executor agents has no graph "poet"`, "poems"}, []string{executor}},
	} {
		t.Run(name, func(t *testing.T) {
			tools := folder(t, c.there)
			if text, err := os.ReadFile(filepath.Join(tools, "inbox.yaml")); err == nil {
				if err := os.WriteFile(filepath.Join(tools, "inbox.yaml"), []byte(strings.Replace(string(text), "ROOT", t.TempDir(), 1)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h := serve(t, "--connection-dir", tools)
			defer h.end()
			token, err := os.ReadFile(filepath.Join(h.dir, ".pawl", "admin.token"))
			if err != nil {
				t.Fatal(err)
			}
			c := struct {
				call
				warns, not []string
			}{call{dir: folder(t, needs), env: map[string]string{"PAWL_URL": h.url, "PAWL_TOKEN": strings.TrimSpace(string(token))}}, c.warns, c.not}
			for _, args := range [][]string{{"apply", "-f", ".", "--dry-run"}, {"apply", "-f", "."}, {"apply", "-f", "."}} {
				r := c.run(t, args...)
				r.expect(t, pawl.ExitDone, append(c.warns, "warning: this never runs")...)
				for _, not := range c.not {
					if strings.Contains(r.stderr, not) {
						t.Errorf("%v warns of what is there:\n%s", args, r.stderr)
					}
				}
				if n := strings.Count(r.stderr, "this never runs"); n != 1 {
					t.Errorf("%v warns %d times of one thing:\n%s", args, n, r.stderr)
				}
			}
		})
	}
}
