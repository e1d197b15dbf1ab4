package demo

import (
	"errors"
	"strings"
	"testing"
	"time"

	pawl "github.com/pawlrun/pawl"
)

// allWell is a round in which every promise was kept.
func allWell() tally {
	var list tally
	for _, sc := range scenes() {
		list = append(list, outcome{sc, "seen " + sc.name, nil})
	}
	return list
}

func TestKeptPromisesAreNoError(t *testing.T) {
	total := allWell()
	if err := total.verdict(); err != nil {
		t.Error(err)
	}
	text := total.summary(&story{}, 30, 2, 12*time.Second)
	if strings.Count(text, "✓") != len(scenes()) || !strings.Contains(text, "Every promise was kept.\n30 jobs and 2 repeated attempts in 12.0 s.") {
		t.Error(text)
	}
}

func TestBrokenPromiseIsAnError(t *testing.T) {
	total := allWell()
	total[1].err = errors.New("two at once")
	err := total.verdict()
	if pawl.ErrorCode(err).ExitCode() != pawl.ExitFailed || !strings.Contains(err.Error(), total[1].scene.name) {
		t.Errorf("got %v", err)
	}
	if text := total.summary(&story{}, 1, 1, 0); !strings.Contains(text, "broken: two at once") || !strings.Contains(text, "Not every promise") {
		t.Error(text)
	}
}

func TestSceneThatWasCutShortIsNeitherKeptNorBroken(t *testing.T) {
	total := allWell()
	total[0].err = errEnded
	if err := total.verdict(); err != nil {
		t.Error(err)
	}
	if text := total.summary(&story{}, 1, 1, 0); !strings.Contains(text, "- "+total[0].scene.name) || !strings.Contains(text, "not shown: the demo ended first") || !strings.Contains(text, "not all were shown") {
		t.Error(text)
	}
}
