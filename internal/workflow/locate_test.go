package workflow

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/script"
)

// expectPlace looks for a path in a source; the place must be the marker's.
func expectPlace(t *testing.T, source, path string) {
	t.Helper()
	before, after, ok := strings.Cut(source, marker)
	if !ok {
		t.Fatalf("no marker in %s", source)
	}
	var names []string
	if path != "" {
		names = strings.Split(path, " ")
	}
	l := newLocator(before + after)
	if got := l.offset(names); got != len(before) {
		line, column, _ := l.place(got)
		t.Errorf("%q is found at %d:%d in\n%s", path, line, column, source)
	}
}

func TestPathsAreFoundHoweverTheScriptIsWritten(t *testing.T) {
	for name, test := range map[string]struct{ path, source string }{
		"plain":            {"producers p schedule", `export default { producers: { p: { ▶schedule: {} } } }`},
		"helper":           {"name", `export default workflow({ ▶name: 1 })`},
		"helper of types":  {"name", `export default workflow<"a" | Array<{ name: string }>>({ ▶name: 1 })`},
		"helper of helper": {"consumers c next", `export default workflow({ consumers: { c: consumer({ ▶next() {} }) } })`},
		"member call":      {"name", `export default Object.freeze({ ▶name: 1 })`},
		"parentheses":      {"name", `export default (({ ▶name: 1 }))`},
		"as and satisfies": {"name", `export default { ▶name: 1 } as const satisfies X`},
		"variable":         {"name", `const w = { ▶name: 1 }; export default w`},
		"typed variable":   {"name", `const w: Map<string, () => { name: 1 }> = { ▶name: 1 }; export default w`},
		"later variable":   {"name", `export default w; const w = { ▶name: 1 }`},
		"named export":     {"name", "const w = { ▶name: 1 }\nexport { w as default }"},
		"shorthand":        {"producers poll", `const poll = {}; export default { producers: { ▶poll } }`},
		"through it":       {"producers poll handler", `const poll = producer({ async ▶handler() {} }); export default { producers: { poll } }`},
		"variables":        {"a b c", `const a = { b }, z = 1; const b = { ▶c: 1 }; export default { a }`},
		"spread":           {"a x", `const base = { ▶x: 1 }; export default { a: { ...base, y: 1 } }`},
		"spread helper":    {"a x", `const base = { x: 1 }; export default { a: { ...base, ▶x: 1 } }`},
		"last spread":      {"x", `const a = { x: 1 }; const b = { ▶x: 2 }; export default { ...a, ...b }`},
		"last of two":      {"x", `export default { x: 1, ▶x: 2 }`},
		"quoted":           {`mail.received`, `export default { ▶"mail.received": {} }`},
		"single quotes":    {`it's`, `export default { ▶'it\'s': {} }`},
		"escaped":          {`a"b\c`, `export default { ▶"a\"b\\c": {} }`},
		"number":           {"1", `export default { ▶1: {} }`},
		"computed":         {"a", `export default { ▶["a"]: {} }`},
		"computed unknown": {"a", `export default { [x + "b"]: { a: 1 }, ▶a: {} }`},
		"method":           {"prepare", `export default { ▶prepare(ctx: Context<{ a: 1 }>) { return { prepare: 1 } } }`},
		"async method":     {"prepare", `export default { async ▶prepare() {} }`},
		"generator":        {"prepare", `export default { async *▶prepare() {} }`},
		"generic method":   {"next", `export default { prepare<A, B>(a: A, b: B) {}, ▶next: 1 }`},
		"getter":           {"prepare", `export default { get ▶prepare() { return 1 } }`},
		"called async":     {"async", `export default { ▶async() {}, get: 1 }`},
		"called get":       {"get", `export default { async: 1, ▶get: 1 }`},
		"shorthand get":    {"get", `export default { ▶get, set }`},
		"list":             {"publishes 1", `export default { publishes: ["a", ▶"b"] }`},
		"list of calls":    {"publishes 2", `export default { publishes: [f(1, 2), [3, 4], ▶"b",] }`},
		"after arrow":      {"b", `export default { a: (x, y) => ({ b: 1 }), ▶b: 1 }`},
		"after ternary":    {"b", `export default { a: x ? { b: 1 } : { b: 2 }, ▶b: 1 }`},
	} {
		t.Run(name, func(t *testing.T) { expectPlace(t, test.source, test.path) })
	}
}

func TestTextsAndCommentsHideBrackets(t *testing.T) {
	for name, before := range map[string]string{
		"comment":             "/* } b: { */ // } \n",
		"comment with quote":  "// it's\n",
		"string":              `a: "}, b: {", `,
		"string with escape":  `a: '\'}', `,
		"template":            "a: `}, ${x} b: {`, ",
		"nested template":     "a: `${`}${{ b: `}` }.b}`}`, ",
		"template of braces":  "a: `${(() => { return `}` })()} }`, ",
		"escaped template":    "a: `\\${ \\` }`, ",
		"regexp":              `a: /}"/, `,
		"regexp class":        `a: /[/}"]/g, `,
		"regexp after (":      `a: f(/"/), `,
		"regexp after return": `a() { return /"/.test(x) }, `,
		"regexp after if":     `a() { if (x) /"/.test(x) }, `,
		"regexp after !":      `a: !/"/.test(x), `,
		"division":            `a: x / y, c: z / "}", `,
		"division after )":    `a: (x) / y / "}".length, `,
		"division after !":    `a: x! / 2 + "/}", `,
		"unclosed division":   "a: [1] / 2,\n",
		"increment":           `a: x++ / 2, c: "}/", `,
		"unicode":             `größe: { b: 1 }, "😀": "}", `,
		"no-break space":      "\u00a0\ufeff a: 1, ",
		"number":              `a: 1_000.5e3, `,
		"private":             `a: class { #b = 1; static { } }, `,
		"optional chaining":   `a: x?.b ?? { b: 1 }, `,
		"comparison":          `a: x <= y || x >= z, `,
	} {
		t.Run(name, func(t *testing.T) { expectPlace(t, "export default { "+before+marker+"b: 1 }", "b") })
	}
	expectPlace(t, "#!/usr/bin/env node '\n▶export default {}", "")
}

func TestWhatIsNotFoundHasThePlaceOfWhatIsAroundIt(t *testing.T) {
	for name, test := range map[string]struct{ path, source string }{
		"missing field":    {"producers p schedule interval", `export default { producers: { ▶p: {} } }`},
		"missing handler":  {"producers q", `export default { ▶producers: { p: {} } }`},
		"missing group":    {"consumers", ` ▶export default { producers: {} }`},
		"root":             {"", `import "pawl"; ▶export default {}`},
		"built elsewhere":  {"consumers c", `export default { ▶consumers: build() }`},
		"unknown variable": {"consumers c", `export default { ▶consumers: all.of.them }`},
		"method":           {"c x", `export default { ▶c() { return { x: 1 } } }`},
		"not an object":    {"name", `▶export default 1 + 1`},
		"list is shorter":  {"publishes 5", `export default { ▶publishes: ["a"] }`},
		"circle":           {"a b", `const x = y; const y = x; export default { ▶a: x }`},
		"circle of spread": {"a b", `const x = { ...x, ...x, ...x }; export default { ▶a: x }`},
		"no default":       {"a", `▶export const a = { a: 1 }`},
		"only in a text":   {"a", `▶ "export default { a: 1 }"`},
		"empty":            {"a", `▶`},
		"unbalanced":       {"a b", `▶export default { a: { b: (] }`},
		"nothing exported": {"a", `▶export default`},
		"no value":         {"a", `export default { ▶a: ` + "}"},
	} {
		t.Run(name, func(t *testing.T) { expectPlace(t, test.source, test.path) })
	}
}

// The compiler warns of a field that is there twice, at the second one, which
// is the one that counts: both must name the same place.
func TestPlacesAreThoseOfTheCompiler(t *testing.T) {
	for _, before := range []string{"", "\n\n", "\r\n\r\n ", "\r\r", "\u2028 \u2029", "/* 😀é\U0001F680 */", "\t'\\\n', ", "\n/*\r\n*/ é: `\n\n`, "} {
		source := "export default {" + strings.Replace(before, "', ", "': 1, ", 1) + " a: 1,\n" + strings.Replace(before, "', ", "': 2, ", 1) + " a: 2 }"
		program, err := script.Compile("w.ts", source)
		if err != nil {
			t.Fatalf("%q: %v", source, err)
		}
		last := program.Warnings[len(program.Warnings)-1]
		line, column := Locate(source, "a")
		if !strings.Contains(last.Message, `"a"`) || line != last.Line || column != last.Column {
			t.Errorf("%q: %d:%d, the compiler says %s", source, line, column, last)
		}
	}
}

// Sources that are made to take long: each is as large as a script may be.
func TestLocateIsQuickForAnySource(t *testing.T) {
	fill := func(head, piece, tail string) string {
		return head + strings.Repeat(piece, (script.MaxSource-len(head)-len(tail))/len(piece)) + tail
	}
	sources := map[string]string{
		"blanks": fill("", " ", ""), "open": fill("export default ", "{", ""), "fields": fill("export default {", "a:{", ""),
		"close": fill("", "}", ""), "regexps": fill("", "=[/", ""), "classes": fill("", "(/[", ""), "slashes": fill("", "/ ", ""),
		"templates": fill("", "`${", ""), "strings": fill("", `"`, ""), "comments": fill("", "/*", ""), "consts": fill("", "const a ", ""),
		"exports": fill("", "export {", ""), "types": fill("export default ", "a<", ""), "members": fill("const a = a", ".a", "(a); export default a"),
		"spreads": fill("const a = {", "...a,", "}; export default a"), "lines": fill("export default {", "\n", "a:1}"),
		"calls": fill("export default ", "a(", ""), "list": fill("export default [", "1,", "]"), "wide": fill("export default {", "a:1,", "}"),
		"not text": fill("", "\xff\xfe", ""), "words": fill("", "é", ""), "closed": fill("export default ", "{", strings.Repeat("}", 1000)),
	}
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			l := newLocator(source)
			for range mostCollected {
				l.offset([]string{"a", "a", "a", "a", "x"})
			}
			for range mostFaults {
				l.place(len(source))
			}
			if took := time.Since(start); took > 5*time.Second { // some 100 ms are usual
				t.Errorf("it took %s", took)
			}
		})
	}
}

func FuzzLocate(f *testing.F) {
	for _, source := range []string{
		`export default workflow<"a">({ name: "x", ...base, async prepare() { return /[}]/ }, get a() {}, "q.r": [1, "2"] })`,
		"const w = { a: `${`x${{}}`}` }; export { w as default }",
		"export default { a: x! / 2, b: !/\"/g, c: (1) / 2 /* } */ } // x",
		"#!x\r\n\u2028export default {'\\'': 1, [\"a\"]: 2, 1: 3, *g() {}, \xff}",
		"export default", "export {", "const a =", "`${", "/", "\"", "'\\", "export default a<", "const a = a.a.a(a); export default a",
		"...", "[", "export default [,,", "export default {async", "export default {...",
	} {
		f.Add(source, "a", "0")
	}
	f.Fuzz(func(t *testing.T, source, first, second string) {
		l := newLocator(source)
		offset := l.offset([]string{first, second})
		if offset < 0 || offset > len(source) {
			t.Fatalf("offset %d of %d", offset, len(source))
		}
		line, column, text := l.place(offset)
		if line < 1 || column < 1 || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r") {
			t.Errorf("place %d:%d, line %q", line, column, text)
		}
		for i, token := range l.tokens {
			if token.start > token.end || i > 0 && token.start < l.tokens[i-1].end {
				t.Fatalf("token %d is out of order", i)
			}
		}
	})
}
