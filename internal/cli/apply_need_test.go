package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// What needs a source can be applied together with it, whatever the files are called,
// also if the source publishes to the workflow that needs it. Without it, it is refused
// at its place.
func TestApplyBringsSourcesBeforeWhatNeedsThem(t *testing.T) {
	source := "kind: source\nname: prices\nurl: http://127.0.0.1:1/prices\ntable: prices\nschedule: {interval: 5m, except: [\"calendar:holidays\"]}\nwrite: {key: [id]}\n" +
		"response: {fields: [{source: id, target: id, type: integer}]}\npublish: {workflow: reorder, topic: found}\n"
	files := map[string]string{
		"a.yaml": "kind: schedule\nname: nightly\nrun: {url: \"http://127.0.0.1:1/\"}\ncron: 0 3 * * *\nneeds: [{source: prices, maxAge: 1h, wait: 30m}]\n",
		"b.workflow.js": `export default {
  name: "reorder",
  topics: { found: {} },
  needs: [{ source: "prices", maxAge: "1h" }],
  consumers: { order: { subscribe: ["found"], prepare: async (ctx) => ({ reservations: [], data: {} }) } },
};
`,
	}
	h := serve(t)
	defer h.end()
	token, err := os.ReadFile(filepath.Join(h.dir, ".pawl", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PAWL_URL": h.url, "PAWL_TOKEN": strings.TrimSpace(string(token))}
	alone := call{dir: folder(t, files), env: env}
	alone.run(t, "apply", "-f", "a.yaml").expect(t, pawl.ExitFailed, `there is no source "prices"`, "Apply the source first, or together with this.")
	alone.run(t, "apply", "-f", "b.workflow.js").expect(t, pawl.ExitFailed, "b.workflow.js:4:13", `there is no source "prices"`)
	files["z.yaml"] = source
	files["c.yaml"] = "kind: schedule\nname: weekdays\nrun: {url: \"http://127.0.0.1:1/\"}\ncron: 0 3 * * *\nexcept: [\"calendar:holidays\"]\n"
	files["d.workflow.js"] = `export default {
  name: "look",
  topics: { seen: {} },
  producers: { look: { publishes: ["seen"], schedule: { interval: "5m", except: ["calendar:holidays"] }, handler: async () => ({}) } },
  consumers: { take: { subscribe: ["seen"], prepare: async (ctx) => ({ reservations: [], data: {} }) } },
};
`
	files["y.yaml"] = "kind: calendar\nname: holidays\ndays: [\"2099-12-24\"]\n"
	together := call{dir: folder(t, files), env: env}
	dry := together.run(t, "apply", "-f", ".", "--dry-run")
	dry.expect(t, pawl.ExitDone, "Dry run, nothing was changed: 6 created.")
	for _, said := range []string{"calendar holidays", "source prices", "schedule nightly", "schedule weekdays", "workflow reorder", "workflow look"} {
		if !strings.Contains(dry.stdout, said+" created (dry run)\n") {
			t.Errorf("a dry run does not tell of the %s: %s", said, dry.stdout)
		}
	}
	together.run(t, "get", "schedule", "nightly").expect(t, pawl.ExitNotFound, "")
	together.run(t, "apply", "-f", ".").expect(t, pawl.ExitDone, "")
	together.run(t, "describe", "schedule", "nightly").expect(t, pawl.ExitDone, "")
	for _, lane := range []string{"schedule nightly", "workflow reorder"} {
		r := together.run(t, append([]string{"describe"}, strings.Fields(lane)...)...)
		if !strings.Contains(r.stdout, "source prices at most 1h old (waits up to 30m)") {
			t.Errorf("%s: %s", lane, r.stdout)
		}
	}
	together.run(t, "delete", "source", "prices", "--yes").expect(t, pawl.ExitRefused, "is needed by schedule nightly, workflow reorder")
}
