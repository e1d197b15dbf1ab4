package demo

import (
	"errors"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// allWell is a round in which every promise was kept.
func allWell() []outcome {
	var list []outcome
	for _, sc := range scenes() {
		list = append(list, outcome{sc, "seen " + sc.name, nil})
	}
	return list
}

func TestKeptPromisesAreNoError(t *testing.T) {
	total := newTally()
	total.add(allWell())
	if err := total.verdict(); err != nil {
		t.Error(err)
	}
	text := total.summary(&story{}, 30, 2, 12*time.Second)
	if strings.Count(text, "✓") != len(scenes()) || !strings.Contains(text, "Every promise was kept.\n30 jobs and 2 repeated attempts in 12.0 s.") {
		t.Error(text)
	}
}

func TestBrokenPromiseIsNotForgotten(t *testing.T) {
	broken := allWell()
	broken[1].err = errors.New("two at once")
	total := newTally()
	total.add(allWell())
	total.add(broken)
	total.add(allWell())
	err := total.verdict()
	if pawl.ErrorCode(err).ExitCode() != pawl.ExitFailed || !strings.Contains(err.Error(), broken[1].scene.name) {
		t.Errorf("got %v", err)
	}
	if text := total.summary(&story{}, 1, 1, 0); !strings.Contains(text, "broken: two at once") || !strings.Contains(text, "Not every promise") {
		t.Error(text)
	}
}

func TestSceneThatWasCutShortIsNeitherKeptNorBroken(t *testing.T) {
	cut := allWell()
	cut[0].err = errEnded
	total := newTally()
	total.add(cut)
	if err := total.verdict(); err != nil {
		t.Error(err)
	}
	if text := total.summary(&story{}, 1, 1, 0); !strings.Contains(text, "- "+cut[0].scene.name) || !strings.Contains(text, "the demo ended first") || !strings.Contains(text, "not all could be shown") {
		t.Error(text)
	}
	total = newTally()
	total.add(allWell())
	total.add(cut) // an earlier round showed it
	if text := total.summary(&story{}, 1, 1, 0); strings.Contains(text, "ended first") {
		t.Error(text)
	}
}
