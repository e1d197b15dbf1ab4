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

func TestTableColoursStatesOnATerminal(t *testing.T) {
	columns := []column{{title: "state", state: true}}
	if got := render(t, call{terminal: true}, columns, []string{"failed"}); !strings.Contains(got[1], text.FgRed.EscapeSeq()+"failed") {
		t.Errorf("got %q", got[1])
	}
}

func TestForeignTextCannotBreakATable(t *testing.T) {
	got := render(t, call{}, []column{{title: "error"}}, []string{"a\nb\x1b[2Jc\u009b"})
	if len(got) != 2 || got[1] != "a b[2Jc" {
		t.Errorf("got %q", got)
	}
}
