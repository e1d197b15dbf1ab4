package repair

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlrun/pawl"
)

func shape() Shape {
	return Shape{
		Name: "letters", Topics: []string{"a", "b"}, Producers: []string{"poll"}, Consumers: []string{"enter", "tell"},
		Mutates:    []string{"enter"},
		Publishes:  map[string][]string{"producers.poll": {"a"}, "consumers.enter": {"b"}},
		Subscribes: map[string][]string{"consumers.enter": {"a"}, "consumers.tell": {"b"}},
		Tools:      []string{"book", "inbox"},
	}
}

// Context 3.9: a repair may not widen declared topics or rights.
func TestRepairMayNotReachFurther(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Shape)
		words  string // empty when it may
	}{
		{"nothing", func(*Shape) {}, ""},
		{"another order", func(s *Shape) { s.Topics = []string{"b", "a"} }, ""},
		{"less", func(s *Shape) { *s = Shape{Name: "letters"} }, ""},
		{"the name", func(s *Shape) { s.Name = "other" }, `changes to "other"`},
		{"a topic", func(s *Shape) { s.Topics = append(s.Topics, "z", "c") }, `the topic "c" is new`},
		{"a producer", func(s *Shape) { s.Producers = append(s.Producers, "enter") }, `the producer "enter"`},
		{"a consumer", func(s *Shape) { s.Consumers = append(s.Consumers, "poll") }, `the consumer "poll"`},
		{"a mutate", func(s *Shape) { s.Mutates = append(s.Mutates, "tell") }, `mutate in the consumer "tell"`},
		{"a publication", func(s *Shape) { s.Publishes["consumers.tell"] = []string{"a"} }, `"consumers.tell" publishes to "a"`},
		{"a subscription", func(s *Shape) { s.Subscribes["consumers.tell"] = []string{"b", "a"} }, `"consumers.tell" subscribes to "a"`},
		{"a tool", func(s *Shape) { s.Tools = append(s.Tools, "bank") }, `the tool "bank"`},
		{"any tool", func(s *Shape) { s.Tools = append(s.Tools, AnyTool) }, `through a variable`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after := shape()
			tt.change(&after)
			err := Narrow(shape(), after)
			if tt.words == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tt.words != "" && (!errors.Is(err, pawl.ErrInvalid) || !strings.Contains(err.Error(), tt.words)) {
				t.Errorf("got %v, want it to say %s", err, tt.words)
			}
		})
	}
}

func TestAnyToolBeforeDoesNotAllowANewName(t *testing.T) {
	before := Shape{Tools: []string{AnyTool}}
	if err := Narrow(before, Shape{Tools: []string{AnyTool}}); err != nil {
		t.Error(err)
	}
	if err := Narrow(before, Shape{Tools: []string{AnyTool, "bank"}}); err == nil {
		t.Error("a new name passed")
	}
}

func TestToolsOfFindsUses(t *testing.T) {
	tests := []struct {
		script string
		want   string // separated by spaces
	}{
		{`await ctx.tools.inbox.list({}); ctx.tools.book.append({})`, "book inbox"},
		{`c.tools.bank.pay()`, "bank"},
		{"ctx\n  .tools\n  .bank\n  .pay()", "bank"},
		{`ctx?.tools?.bank`, "bank"},
		{`ctx.tools!.bank`, "bank"},
		{`ctx.tools["bank"].pay()`, "bank"},
		{`ctx.tools['my-bank'].pay()`, "my-bank"},
		{"ctx.tools[`bank`].pay()", "bank"},
		{"ctx.tools?.[\"bank\"]", "bank"},
		{`ctx["tools"].bank`, "bank"},
		{`ctx["tools"]["bank"]`, "bank"},
		{`ctx.t\u006fols.bank`, "bank"},
		{`ctx.t\u{6f}ols.b\u{00061}nk`, "bank"},
		{`ctx["t\x6fols"].bank`, "bank"},
		{`ctx.tools[name].pay()`, "*"},
		{"ctx.tools[`b${x}`]", "*"},
		{`ctx.tools["ba" + "nk"]`, "*"},
		{`ctx.tools["ba\nnk"]`, "*"},
		{`ctx["to" + "ols"].bank`, "*"},
		{`ctx[k].bank`, "*"},
		{`ctx?.[k].bank`, "*"},
		{`Object.values(ctx)[0].bank`, "*"},
		{`Reflect.get(ctx, "tools").bank`, "*"},
		{`help(ctx.tools)`, "*"},
		{`const t = ctx.tools; t.bank.pay(); t[x]; o.t.other`, "* bank"},
		{`const { tools } = ctx; tools.bank.pay()`, "* bank"},
		{`const { tools: t } = ctx; t.bank.pay()`, "* bank"},
		{`handler({ tools, log }) { tools["bank"] }`, "* bank"},
		{`const { bank, book: b } = ctx.tools;`, "bank book"},
		{`const { bank, ...rest } = ctx.tools;`, "*"},
		{`const { [x]: y } = ctx.tools;`, "*"},
		{`(ctx.tools as any).bank`, "*"},
		{`ctx.tools/* */.bank`, "*"},
		{`ctx./* */tools.bank`, "bank"},
		{"ctx.tools // the\n .bank", "*"},
		{`// ctx.tools.bank is not for us`, "bank"},
		{`ctx.log("no tools today"); // the tools we have`, ""},
		{`ctx.peek("mail.received"); ctx["log"](1)`, ""},
		{`mytools.bank; toolsmith.bank`, ""},
		{``, ""},
		{`ctx.tools[`, "*"},
		{`ctx.tools["`, "*"},
		{`} = ctx.tools`, "*"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(strings.Fields(tt.want), ToolsOf(tt.script), cmp.Transformer("list", func(l []string) string { return strings.Join(l, " ") })); diff != "" {
			t.Errorf("%s\n%s", tt.script, diff)
		}
	}
}

func FuzzToolsOf(f *testing.F) {
	f.Add("const { bank } = ctx.tools[`x`]")
	f.Add(`ctx.tools["`)
	f.Fuzz(func(t *testing.T, script string) {
		// A use at the end is found, whatever stands before it.
		found := strings.Join(ToolsOf(script+"\n;ctx.tools.bank.pay()"), " ")
		if !strings.Contains(" "+found+" ", " bank ") {
			t.Errorf("found only %q", found)
		}
	})
}
