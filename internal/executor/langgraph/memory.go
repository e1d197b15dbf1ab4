package langgraph

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/pawlrun/pawl/internal/executor/runner"
)

// memory is the Remote of this executor; see the package doc.
type memory struct {
	Thread   string `json:"thread,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Run      string `json:"run,omitempty"`      // empty: it was asked for, and the answer was not seen
	ResumeOf string `json:"resumeOf,omitempty"` // the run whose question it answers
	Settled  bool   `json:"settled,omitempty"`  // it ended, or never began, and that was told
}

func remember(r runner.Run) (memory, error) {
	var m memory
	if len(r.Remote) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(r.Remote, &m); err != nil {
		return m, fmt.Errorf("read what is remembered of the run: %w", err)
	}
	return m, nil
}

// follows reports whether the run asks for the end of what is remembered, and
// not for something new.
func (m memory) follows(r runner.Run) bool {
	return m.Run != "" && (!m.Settled || m.Attempt == r.Attempt && r.Resume == nil)
}

// asked reports whether a run was asked for, and nobody knows its id.
func (m memory) asked() bool { return m.Thread != "" && m.Run == "" && !m.Settled }

// threadOf is the id of the thread of an attempt.
func threadOf(runID string, attempt int) string {
	name := runID
	if attempt > 1 {
		name = fmt.Sprintf("%s/%d", runID, attempt)
	}
	space := uuid.NewSHA1(uuid.NameSpaceURL, []byte("pawl:langgraph:thread"))
	return uuid.NewSHA1(space, []byte(name)).String()
}
