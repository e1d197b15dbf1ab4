package script

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWellFormedReplacesHalfPairs(t *testing.T) {
	for text, want := range map[string]string{
		`"a"`:                     `"a"`,
		`"\ud800"`:                `"\ufffd"`,
		`"\uD83D\uDE00"`:          `"\uD83D\uDE00"`,
		`"\uDE00\uD83D"`:          `"\ufffd\ufffd"`,
		`"\ud83d\ud83d\ude00"`:    `"\ufffd\ud83d\ude00"`,
		`"\\ud800"`:               `"\\ud800"`,
		`"\\\ud800"`:              `"\\\ufffd"`,
		`"\u0041\n\"\ud800x"`:     `"\u0041\n\"\ufffdx"`,
		`"\ud800\n"`:              `"\ufffd\n"`,
		"\"\xff\"":                "\"\uFFFD\"",
		"\"\xed\xa0\x80\\udc00\"": "\"\uFFFD\\ufffd\"",
	} {
		if got := string(wellFormed([]byte(text))); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func FuzzWellFormed(f *testing.F) {
	for _, seed := range []string{`"\ud800"`, `{"\udfff":[1,"\\ud8"]}`, "\"\xed\xa0\x80\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		got := wellFormed(text)
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("%q became %q", text, got)
		}
		var before, after any
		if json.Unmarshal(text, &before) == nil && utf8.Valid(text) {
			if json.Unmarshal(got, &after) != nil || !bytes.Equal(mustJSON(t, before), mustJSON(t, after)) {
				t.Fatalf("%q became %q", text, got)
			}
		}
	})
}

func TestFramesSurviveTheWire(t *testing.T) {
	frames := []frame{{fromCall, 7, []byte("x")}, {fromDone, 1<<32 - 1, []byte{}}, {toRun, 0, bytes.Repeat([]byte("é"), 1e5)}}
	var wire []byte
	for _, f := range frames {
		wire = appendFrame(wire, f)
	}
	r := bufio.NewReader(bytes.NewReader(wire))
	for _, want := range frames {
		got, err := readFrame(r, func(kind) int { return 1 << 20 })
		if err != nil || got.kind != want.kind || got.id != want.id || !bytes.Equal(got.payload, want.payload) {
			t.Fatalf("got %v, %v", got.kind, err)
		}
	}
	if _, err := readFrame(r, toLimit); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("C\x01\x00\x00\x00\x02\x00\x00\x00ab"))
	f.Add([]byte("C\x01\x00\x00\x00\xff\xff\xff\xff"))
	x := &exchange{limits: hostileLimits}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := bufio.NewReader(bytes.NewReader(wire))
		for {
			got, err := readFrame(r, x.mostBytes)
			if err != nil {
				return
			}
			if len(got.payload) > x.mostBytes(got.kind) {
				t.Fatalf("a frame of %d bytes", len(got.payload))
			}
			_, _, _, _ = splitCall(got.payload)
			_, _ = splitHeader(got.payload, &ending{})
		}
	})
}

func TestSourceMapIsRead(t *testing.T) {
	// Two lines; the second has places at columns 0 and 4, and one of nowhere.
	m, err := parseSourceMap([]byte(`{"version":3,"sources":["a"],"mappings":";AACA,IAAI,E"}`))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[[2]int]Place{
		{1, 0}: {"a", 2, 1}, {1, 3}: {"a", 2, 1}, {1, 4}: {"a", 2, 5}, {1, 5}: {"a", 2, 5},
		{1, 6}: {}, {0, 0}: {}, {2, 0}: {}, {-1, 0}: {},
	} {
		if got := m.find(at[0], at[1]); got != want {
			t.Errorf("%v is %v, want %v", at, got, want)
		}
	}
	for _, bad := range []string{``, `{}`, `{"version":2}`, `{"version":3,"mappings":"!"}`, `{"version":3,"mappings":"g"}`, `{"version":3,"mappings":"gggggggggggA"}`} {
		if _, err := parseSourceMap([]byte(bad)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func FuzzSourceMap(f *testing.F) {
	f.Add(`;AACA,IAAI,E`, "    at f (<eval>:1002:5)\n")
	f.Add(`DDDD;ADAD`, "<eval>:999999999:999999999 <eval>:0:0")
	f.Fuzz(func(t *testing.T, mappings, stack string) {
		text, err := json.Marshal(map[string]any{"version": 3, "sources": []string{sourceFile}, "mappings": mappings})
		if err != nil {
			t.Fatal(err)
		}
		program := NewProgram("f", "", text)
		mapped, place := program.mapStack(stack)
		if strings.Count(mapped, "\n") > mostFrames || place.Line < 0 || place.Column < 0 {
			t.Fatalf("%q, %v", mapped, place)
		}
	})
}

func TestPreludeEndsBeforeProgramsBegin(t *testing.T) {
	if lines := strings.Count(preludeSource, "\n"); lines >= lineShift {
		t.Errorf("the prelude has %d lines: raise lineShift, or places of the two are mixed up", lines)
	}
}
