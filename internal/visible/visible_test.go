package visible

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// What looks like something else, or like nothing, is written out.
func TestHiddenCharactersAreWritten(t *testing.T) {
	for given, want := range map[string]string{
		"plain, with\ttabs and\nlines":  "plain, with\ttabs and\nlines",
		"Grüße, 東京, Ω, €, ñ":            "Grüße, 東京, Ω, €, ñ",
		"pay \u202e0001\u202c EUR":      `pay \u202e0001\u202c EUR`,
		"a\u200bb\u200cc\u200dd\ufeffe": `a\u200bb\u200cc\u200dd\ufeffe`,
		"\x1b[2J\x07\x00\x7f":           `\u001b[2J\u0007\u0000\u007f`,
		"\u009b31m":                     `\u009b31m`,
		"a\rb":                          `a\u000db`,
		"a\u00a0b\u2003c\u3000d\u2028e": `a\u00a0b\u2003c\u3000d\u2028e`,
		"soft\u00adhyphen":              `soft\u00adhyphen`,
		"\u2066x\u2069\u061c":           `\u2066x\u2069\u061c`,
		"\U000e0041tag\U000e007f":       `\udb40\udc41tag\udb40\udc7f`,
		"filler \u3164\u115f\uffa0":     `filler \u3164\u115f\uffa0`,
		"blank \u2800":                  `blank \u2800`,
		"a\ufe0f":                       `a\ufe0f`,
		"private \ue000":                `private \ue000`,
		"not text \xff\xfe":             `not text \xff\xfe`,
		"👩‍👩‍👧 and ❤️ and 🏳️‍🌈":        "👩‍👩‍👧 and ❤️ and 🏳️‍🌈",
		"joined \u200d👩\u200d nothing": `joined \u200d👩\u200d nothing`,
		"twice ❤\ufe0f\ufe0f":          "twice ❤\ufe0f" + `\ufe0f`,
	} {
		if got := Text(given); got != want {
			t.Errorf("%q is shown as %q, want %q", given, got, want)
		}
		if Has(given) != (given != want) {
			t.Errorf("%q has hidden characters: %v", given, Has(given))
		}
	}
	if got := Line("a\nb\r\tc\x1b"); got != `a b  c\u001b` {
		t.Errorf("on one line: %q", got)
	}
}

// Whatever is given, nothing that a terminal obeys or that turns text is left,
// showing twice changes nothing, and JSON stays the same value.
func TestNothingHiddenIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.String().Draw(t, "text") + string([]rune{rapid.Rune().Draw(t, "rune"), rapid.RuneFrom(nil, unicode.Cf, unicode.Cc, unicode.Zs).Draw(t, "odd")})
		shown := Text(given)
		for _, r := range shown {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%q is shown as %q", given, shown)
			}
		}
		if again := Text(shown); again != shown {
			t.Fatalf("%q, shown twice: %q", shown, again)
		}
		raw, err := json.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal([]byte(Text(string(raw))), &back); err != nil || back != strings.ToValidUTF8(given, "\ufffd") {
			t.Fatalf("%s reads as %q (%v)", Text(string(raw)), back, err)
		}
	})
}

func TestPagesMarkHiddenCharacters(t *testing.T) {
	mark := func(text string) string {
		return `<span class="hidden-char" title="a character that cannot be seen">` + text + `</span>`
	}
	for given, want := range map[string]string{
		"<p>fine</p>":                        "<p>fine</p>",
		"<p>pay \u202e1</p>":                 "<p>pay " + mark(`\u202e`) + "1</p>",
		"<p title=\"\u202e\">x</p>":          `<p title="\u202e">x</p>`,
		"<title>\u200b</title><p>\u200b</p>": `<title>\u200b</title><p>` + mark(`\u200b`) + `</p>`,
		"<textarea name=x>\u200b</textarea>": `<textarea name=x>\u200b</textarea>`,
		"<option>\u200b</option>":            `<option>\u200b</option>`,
		"<pre>\x1b[1m</pre>":                 "<pre>" + mark(`\u001b`) + "[1m</pre>",
		"<titles>\u200b</titles>":            "<titles>" + mark(`\u200b`) + "</titles>",
	} {
		if got := HTML(given); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
}

func TestExcerptIsOneShortLine(t *testing.T) {
	for said, want := range map[string]string{
		"":                          "",
		" a\r\n\tb\u202ec ":         "a b c",
		"bad \xff byte":             "bad \uFFFD byte",
		"twelve of ü":               "twelve of ü",
		"twelve of them and others": "twelve of th...",
	} {
		if got := Excerpt(said, 12); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

func TestTruncateKeepsCharactersWhole(t *testing.T) {
	for most, want := range []string{"...", "a...", "a...", "aé...", "aé...", "aé...", "aé...", "aé😀...", "aé😀b...", "aé😀bc", "aé😀bc"} {
		if got := Truncate("aé😀bc", most); got != want {
			t.Errorf("at %d: %q, want %q", most, got, want)
		}
	}
	for said, want := range map[string]string{"ab\xffc": "ab\uFFFDc", "\x80\x80\x80\x80\x80\x80\x80\x80\x80": "\uFFFD...", "": ""} {
		if got := Truncate(said, 8); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
