package server

import (
	"log/slog"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// A file that is refused is told with every fault, each with its own hint; one that is
// about the whole error is not told of faults that it does not mend.
func TestARefusedFileTellsEachFaultWithItsHint(t *testing.T) {
	for name, c := range map[string]struct {
		err  pawl.Error
		want []string
	}{
		"no field":  {pawl.Error{Msg: "it is too large", Hint: "split it"}, []string{"it is too large; split it"}},
		"one field": {pawl.Error{Hint: "add one", Fields: []pawl.Field{{Message: "name is missing"}}}, []string{"name is missing; add one"}},
		"its own":   {pawl.Error{Hint: "add one", Fields: []pawl.Field{{Message: "name is missing", Hint: "think"}}}, []string{"name is missing; think"}},
		"several": {
			pawl.Error{Hint: "add one", Fields: []pawl.Field{{Message: "name is missing", Hint: "add one"}, {Message: "url is missing"}}},
			[]string{"name is missing; add one", "url is missing"},
		},
		"nobody knows which": {
			pawl.Error{Hint: "add one", Fields: []pawl.Field{{Message: "name is missing"}, {Message: "url is missing"}}},
			[]string{"name is missing", "url is missing"},
		},
	} {
		var log strings.Builder
		f := &folders{server: &server{log: slog.New(slog.NewTextHandler(&log, nil))}}
		f.refused("a.yaml", &c.err)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%s: it tells\n%s", name, log.String())
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(lines[i], `file=a.yaml fault="`+want+`"`) {
				t.Errorf("%s: it tells\n%s\nand not %q", name, lines[i], want)
			}
		}
	}
}
