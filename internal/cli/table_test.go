package cli

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

func render(t *testing.T, c call, columns []column, rows ...[]string) []string {
	t.Helper()
	p, stdout, _ := c.process(t)
	if err := newSheet(p, columns).write(stdout, rows, true); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
}

func TestTableIsAlignedWithoutBorders(t *testing.T) {
	got := render(t, call{}, []column{{title: "id"}, {title: "name"}, {title: "x"}}, []string{"1", "日本", "a"}, []string{"22", "b", "c"})
	want := []string{"ID   NAME   X", "1    日本   a", "22   b      c"}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	long := strings.Repeat("x", 100)
	columns := []column{{title: "id"}, {title: "a", flex: true}, {title: "b", flex: true}}
	for _, line := range render(t, call{terminal: true, width: 40, env: map[string]string{"NO_COLOR": "1"}}, columns, []string{"12345", long, "日本語" + long}) {
		if width := text.StringWidthWithoutEscSequences(line); width > 40 {
			t.Errorf("%d columns: %s", width, line)
		}
		if strings.Contains(line, "xxx") && (!strings.Contains(line, "…") || !strings.HasPrefix(line, "12345 ")) {
			t.Errorf("cut without a sign, or in the wrong column: %s", line)
		}
	}
	if got := render(t, call{width: 40}, columns, []string{"1", long, long}); !strings.Contains(got[1], long) {
		t.Error("a table in a pipe was cut")
	}
}

func TestJobsFitAnOrdinaryTerminal(t *testing.T) {
	row := []string{"380234515138166784", "pawl.prune", "succeeded", "12h30m ago", "10/10", strings.Repeat("lane", 9), strings.Repeat("error ", 30)}
	for _, line := range render(t, call{terminal: true, width: 80, env: map[string]string{"NO_COLOR": "1"}}, jobKind().shown(formatTable), row) {
		if width := text.StringWidthWithoutEscSequences(line); width > 80 {
			t.Errorf("%d columns: %s", width, line)
		}
	}
}

func TestSpareColumnsAreLeftOutOfANarrowTerminal(t *testing.T) {
	columns := []column{{title: "id"}, {title: "name", flex: true, least: 10}, {title: "x", spare: true}, {title: "note", flex: true, spare: true}}
	row := func() []string { return []string{"12345", strings.Repeat("n", 20), "xx", strings.Repeat("o", 20)} }
	for width, want := range map[int]string{0: "ID|NAME|X|NOTE", 60: "ID|NAME|X|NOTE", 32: "ID|NAME|X|NOTE", 31: "ID|NAME|X", 20: "ID|NAME", 5: "ID|NAME"} {
		got := render(t, call{terminal: true, width: width, env: map[string]string{"NO_COLOR": "1"}}, columns, row())
		if titles := strings.Join(strings.Fields(got[0]), "|"); titles != want {
			t.Errorf("width %d: %s, want %s", width, titles, want)
		}
		for _, line := range got {
			if n := text.StringWidthWithoutEscSequences(line); width >= 18 && n > width {
				t.Errorf("width %d: %d columns: %s", width, n, line)
			}
		}
	}
}

// A row that comes later stands below the titles that are there, even if it
// needs more room than the first.
func TestColumnsStayTheSameForLaterRows(t *testing.T) {
	p, stdout, _ := call{terminal: true, width: 20, env: map[string]string{"NO_COLOR": "1"}}.process(t)
	s := newSheet(p, []column{{title: "id"}, {title: "x", spare: true}})
	for i, id := range []string{"1", strings.Repeat("2", 30)} {
		if err := s.write(stdout, [][]string{{id, "x" + id[:1]}}, i == 0); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(stdout.String(), "x2") {
		t.Errorf("got:\n%s", stdout)
	}
}

func TestStatesAreColouredByTheirGroup(t *testing.T) {
	columns := []column{{title: "state", state: true, flex: true}}
	got := render(t, call{terminal: true, width: 8}, columns, []string{"failed:logic"})
	if !strings.Contains(got[1], text.FgRed.EscapeSeq()+"failed:…") {
		t.Errorf("got %q", got[1])
	}
}

func TestTableColoursStatesOnATerminal(t *testing.T) {
	columns := []column{{title: "state", state: true}}
	if got := render(t, call{terminal: true}, columns, []string{"failed"}); !strings.Contains(got[1], text.FgRed.EscapeSeq()+"failed") {
		t.Errorf("got %q", got[1])
	}
}

func TestForeignTextCannotBreakATable(t *testing.T) {
	got := render(t, call{}, []column{{title: "error"}}, []string{"a\nb\x1b[2Jc\u009b"})
	if len(got) != 2 || got[1] != `a b\u001b[2Jc\u009b` {
		t.Errorf("got %q", got)
	}
}
