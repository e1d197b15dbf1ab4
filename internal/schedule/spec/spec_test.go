package spec

import (
	"errors"
	"strings"
	"testing"

	pawl "github.com/pawlrun/pawl"
)

// C-26: cron and zone are checked before anything is written, with their place
// and each with what to do about it.
func TestFaultsHaveTheirPlace(t *testing.T) {
	_, err := Parse("s.yaml", []byte("kind: schedule\nname: poet\ngraph: nograph\ncron: \"61 * * * *\"\ntimezone: Europe/Berln\nconcurencyPolicy: Queue\nretry: {within: soon}\n"))
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok {
		t.Fatalf("the error is %v", err)
	}
	var all []string
	for _, f := range e.Fields {
		all = append(all, f.Pointer+" "+f.String())
	}
	text := strings.Join(all, "\n")
	for _, want := range []string{"s.yaml:3:", "/graph", "s.yaml:4:", "/cron", "s.yaml:6:1", "concurrencyPolicy",
		"; minute is 0-59", "; did you mean Europe/Berlin?", ". A graph id looks like langgraph:poet.", "; use digits and a unit"} {
		if !strings.Contains(text, want) {
			t.Errorf("the faults are\n%s\nwithout %q", text, want)
		}
	}
}

func TestADefinitionIsRead(t *testing.T) {
	list, err := Parse("s.yaml", []byte("kind: schedule\nname: poet\ngraph: langgraph:poet\ninput: {topic: autumn}\ncron: \"0 9 * * *\"\ntimezone: Europe/Berlin\nenabled: false\n"))
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if s := list[0]; s.GraphID != "langgraph:poet" || string(s.Input) != `{"topic":"autumn"}` || s.Enabled == nil || *s.Enabled {
		t.Errorf("it is read as %+v", s)
	}
}
