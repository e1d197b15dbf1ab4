package workflow

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/tool"
)

// What is behind the one call of mutate never runs, and is told; what is in
// another branch may run, and is not.
func TestCodeBehindTheCallIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		mutate string
		want   string // the line that never runs
	}{
		"a second call":      {"async mutate(ctx, p) {\n await ctx.tools.a.post({ x: 1 });\n await ctx.tools.b.post();\n}", "await ctx.tools.b.post();"},
		"a line of the log":  {"async mutate(ctx: any, p: any) {\n const r = await ctx.tools.a.post({\n  x: 1,\n })\n ctx.log(r)\n}", "ctx.log(r)"},
		"an arrow":           {"mutate: async (ctx, p) => {\n await ctx.tools[\"a\"].post(); ctx.log(1)\n}", "await ctx.tools[\"a\"].post(); ctx.log(1)"},
		"a function":         {"mutate: async function (ctx, { data }) {\n if (!data) return;\n await ctx.tools.a.post();\n ctx.log(1);\n}", "ctx.log(1);"},
		"nothing":            {"async mutate(ctx, p) {\n await ctx.tools.a.post({ x: 1 });\n}", ""},
		"nothing, one line":  {"async mutate(ctx, p) { await ctx.tools.a.post({ x: 1 }) }", ""},
		"only an expression": {"mutate: (ctx, p) => ctx.tools.a.post({ x: 1 })", ""},
		"two branches":       {"async mutate(ctx, p) {\n if (p.data) await ctx.tools.a.post();\n else await ctx.tools.b.post();\n}", ""},
		"an early return":    {"async mutate(ctx, p) {\n if (p.data) return ctx.tools.a.post()\n return ctx.tools.b.post()\n}", ""},
		"blocks":             {"async mutate(ctx, p) {\n if (p.data) {\n  await ctx.tools.a.post();\n } else {\n  await ctx.tools.b.post();\n }\n}", ""},
		"a choice":           {"async mutate(ctx, p) {\n await (p.data ? ctx.tools.a.post() : ctx.tools.b.post());\n}", ""},
		"a chain":            {"async mutate(ctx, p) {\n await ctx.tools.a\n  .post()\n}", ""},
		"in a text":          {"async mutate(ctx, p) {\n const s = 'ctx.tools.a.post()';\n await ctx.tools.a.post(s);\n}", ""},
		"not to be read":     {"async mutate(ctx, p) {\n await ctx.tools.a.post(", ""},
	} {
		config := Config{Consumers: []Consumer{{Name: "add"}, {Name: "act", HasMutate: true}}}
		list := advice("w.ts", "export default { consumers: { act: { "+c.mutate+" } } }", &config)
		switch {
		case config.Consumers[1].AfterCall != (c.want != "") || config.Consumers[0].AfterCall:
			t.Errorf("%s: that something is behind the call is %v", name, config.Consumers[1].AfterCall)
		case c.want == "" && len(list) > 0:
			t.Errorf("%s: %v", name, list)
		case c.want != "" && (len(list) != 1 || strings.TrimSpace(list[0].Text) != c.want || list[0].Hint == "" || list[0].File != "w.ts" || list[0].Line == 0):
			t.Errorf("%s: %+v, want the line %q", name, list, c.want)
		}
	}
}

// Connections that the server does not have are told when a script that uses
// them is deployed, each once, with its place.
func TestMissingConnectionsAreTold(t *testing.T) {
	set, err := tool.NewSet(tool.Named{Name: "desk", Connection: newDesk()})
	if err != nil {
		t.Fatal(err)
	}
	source := "const a = ctx.tools.desk.order();\nctx.tools.inbox.list(); ctx.tools['out-box'].send(ctx.tools.inbox)\n// ctx.tools.comment.x\ntools.mine.x; other.tools; ctx.tools[name].x"
	var got []string
	for _, d := range missingConnections("w.ts", source, set) {
		got = append(got, d.String())
	}
	want := []string{`w.ts:2:5: this server has no connection "inbox"`, `w.ts:2:29: this server has no connection "out-box"`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
}
