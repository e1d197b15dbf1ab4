package spec

import (
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/definition"
)

func TestFromDocument(t *testing.T) {
	for text, want := range map[string]string{
		"kind: calendar\nname: holidays\ndays: [\"2026-12-25\", 2026-12-24/2027-01-01]\n": "",
		"kind: calendar\nname: holidays\n":                                                "/days days is missing",
		"kind: calendar\nname: holidays\ndays: []\n":                                      "/days days is empty",
		"kind: calendar\nname: ../x\ndays: [\"2026-12-25\"]\n":                            "/name",
		"kind: calendar\nname: x\ndays: [\"2026-12-25\", \"26-12-26\"]\n":                 "/days/1",
		"kind: calendar\nname: x\ndays: [\"2026-12-25\"]\nday: 1\n":                       "/day unknown field",
	} {
		docs, err := definition.Read("c.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		in, faults := FromDocument(docs[0])
		switch {
		case want == "" && (len(faults) > 0 || in.Name != "holidays" || len(in.Days) != 2):
			t.Errorf("%+v, %v", in, faults)
		case want != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0].Pointer+" "+faults[0].Message, want)):
			t.Errorf("%s: %v", text, faults)
		}
	}
	if !strings.Contains(string(Schema()), `"days"`) {
		t.Error("the schema lacks the days")
	}
}
