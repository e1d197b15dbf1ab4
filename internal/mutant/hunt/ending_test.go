package main

import (
	"fmt"
	"strings"
	"testing"
)

// How tests ended is read from what they print, however it is cut into writes,
// and a line without end takes no memory.
func TestEndingIsReadFromWhatTestsPrint(t *testing.T) {
	text := "=== RUN TestA\n    --- SKIP: TestA/postgres (0.00s)\n" + strings.Repeat("x", 3*longLine) +
		"\n--- FAIL: TestB (0.01s)\n--- FAIL: TestC (0.01s)\npanic: test timed out after 1s\n"
	for _, size := range []int{1, 7, len(text)} {
		var end ending
		for from := 0; from < len(text); from += size {
			_, _ = fmt.Fprint(&end, text[from:min(from+size, len(text))])
		}
		if end.failed != "TestB" || !end.leftOut || !end.hung {
			t.Errorf("in pieces of %d: %+v", size, end)
		}
		if cap(end.line) > 2*longLine {
			t.Errorf("in pieces of %d: keeps %d bytes", size, cap(end.line))
		}
	}
	var calm ending
	_, _ = fmt.Fprint(&calm, "--- PASS: TestA (0.00s)\nPASS\n")
	if calm.failed != "" || calm.leftOut || calm.hung {
		t.Errorf("tests that passed: %+v", calm)
	}
}
