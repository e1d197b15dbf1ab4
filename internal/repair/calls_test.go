package repair

import (
	"fmt"
	"strings"
	"testing"
)

func TestCallsOfFindsWhatAScriptNames(t *testing.T) {
	tests := []struct {
		script string
		want   string // separated by spaces
	}{
		{`await ctx.tools.inbox.list({}); ctx.tools.book.append({})`, "book.append inbox.list"},
		{"c\n .tools\n .bank\n .pay()", "bank.pay"},
		{`ctx?.tools?.bank?.pay()`, "bank.pay"},
		{`ctx["tools"]["my-bank"]["pay"]()`, "my-bank.pay"},
		{`ctx.tools?.["bank"].pay()`, "bank.pay"},
		{"ctx.tools[`bank`].pay()", "bank.pay"},
		{`const t = ctx.tools; t.bank.pay(); o.t.other.call()`, "bank.pay"},
		{`const c = ctx.tools.bank; c.pay(); c.post(); o.c.other()`, "bank.pay bank.post"},
		{`const { bank, book: b } = ctx.tools; bank.pay(); b.add()`, "bank.pay book.add"},
		{`handler({ tools, log }) { tools.bank.pay() }`, "bank.pay"},
		{`const { tools: t } = ctx; t.bank.pay()`, "bank.pay"},
		{`const x = await ctx.tools.bank.get({}); x.body.items`, "bank.get"},
		{"ctx.log(`a ${ctx.tools.bank.pay(`${1}`)} b ${2}`); ctx.tools.book.add()", "bank.pay book.add"},
		// What is not a call is none.
		{`// ctx.tools.bank.pay`, ""},
		{`/* ctx.tools.bank.pay */ ctx.tools.book.add()`, "book.add"},
		{`ctx.log("ctx.tools.bank.pay()")`, ""},
		{"ctx.log(`ctx.tools.bank.pay()`)", ""},
		{`x = /ctx.tools.bank.pay["']/; ctx.tools.book.add()`, "book.add"},
		{`x = a / b; ctx.tools.book.add() / 2`, "book.add"},
		{`mytools.bank.pay; toolsmith.bank.pay`, ""},
		// What is computed is not found; the host holds it at the call.
		{`ctx.tools[name].pay()`, ""},
		{`ctx["to" + "ols"].bank.pay()`, ""},
		{`ctx.tools["ba" + "nk"].pay()`, ""},
		{"ctx.tools[`b${x}`].pay()", ""},
		{`const { bank, ...rest } = ctx.tools; rest.book.add()`, "rest.book"}, // of which there is no connection
		{``, ""}, {`ctx.tools[`, ""}, {`ctx.tools["`, ""}, {`} = ctx.tools`, ""}, {"`${", ""}, {"}", ""}, {"/*", ""}, {"/[", ""},
	}
	for _, tt := range tests {
		var got []string
		for _, c := range CallsOf(tt.script) {
			got = append(got, c.Tool+"."+c.Method)
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s\ngot  %q\nwant %q", tt.script, text, tt.want)
		}
	}
}

func FuzzCallsOf(f *testing.F) {
	f.Add("const { bank } = ctx.tools[`x${y}`]")
	f.Add(`ctx.tools["`)
	f.Fuzz(func(t *testing.T, script string) {
		// A use before everything else is found, whatever follows, and nothing
		// makes it panic or go on for ever.
		found := fmt.Sprint(CallsOf("ctx.tools.bank.pay();\n" + script))
		if !strings.Contains(found, "{bank pay}") {
			t.Errorf("found only %s", found)
		}
	})
}
