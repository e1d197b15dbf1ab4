package cli

import (
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/visible"
)

// questionKind are what graphs ask people.
func questionKind() kind {
	return kind{
		plural: "questions", singular: "question", path: client.QuestionsPath,
		instead: "Questions are those of runs. Show one with: pawl describe run RUN",
		columns: []column{{title: "run"}, {title: "schedule", flex: true, least: 12}, {title: "asked"}, {title: "question", flex: true, least: 20}},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var q client.Question
			if err := json.Unmarshal(raw, &q); err != nil {
				return nil, err
			}
			return []string{q.RunID, orDash(q.Schedule), relative(q.AskedAt.Time, now), visible.Text(string(compactJSON(q.Question)))}, nil
		},
	}
}
