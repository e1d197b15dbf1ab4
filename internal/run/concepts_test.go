package run_test

import (
	"os"
	"strings"
	"testing"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
)

// The page of concepts has every word that people meet: of lanes, phases,
// statuses, calls and slots.
func TestConceptsTellEveryWord(t *testing.T) {
	text, err := os.ReadFile("../../docs/concepts.md")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"**" + string(run.Running) + "**", "**" + string(run.Idle) + "**", "**" + string(run.NeedsAttention) + "**", "**" + string(run.Stopped) + "**"}
	for _, s := range pawl.Statuses() {
		words = append(words, "`"+string(s)+"`")
	}
	for _, h := range []pawl.HandlerType{pawl.HandlerProducer, pawl.HandlerConsumer, pawl.HandlerSource, pawl.HandlerSchedule} {
		for _, p := range pawl.Phases(h) {
			words = append(words, " "+string(p))
		}
	}
	for _, s := range run.MutationStates() {
		words = append(words, " "+string(s))
	}
	for _, s := range run.SlotStatuses() {
		words = append(words, " "+string(s))
	}
	for _, d := range run.Dispositions() {
		words = append(words, "| `"+string(d)+"` |")
	}
	for _, w := range words {
		if !strings.Contains(string(text), w) {
			t.Errorf("docs/concepts.md does not tell %q", w)
		}
	}
}
