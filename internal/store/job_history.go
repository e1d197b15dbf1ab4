package store

// historyRow is a line of job_history on its way into the database.
type historyRow struct {
	ID         int64   `json:"id"`
	Task       string  `json:"task"`
	Owner      string  `json:"owner"`
	Lane       *string `json:"lane"`
	Key        *string `json:"key"`
	State      string  `json:"state"`
	RunAt      int64   `json:"runAt"`
	StartedAt  *int64  `json:"startedAt"`
	FinishedAt int64   `json:"finishedAt"`
	Attempt    int     `json:"attempt"`
	Error      *string `json:"error"`
	Node       string  `json:"node"`
}

// historyRows gives the lines for those jobs that want one, nil if none does.
func historyRows(jobs []Finished, node string) []historyRow {
	var out []historyRow
	for _, f := range jobs {
		if !f.Record || f.NoHistory {
			continue
		}
		j := f.Job
		out = append(out, historyRow{
			ID: j.ID, Task: j.Task, Owner: j.Owner, Lane: NullText(j.Lane), Key: NullText(j.Key), State: f.Verdict.state(),
			RunAt: Millis(j.RunAt), StartedAt: NullMillis(f.StartedAt), FinishedAt: Millis(f.EndedAt), Attempt: j.Attempt + 1, Error: NullText(f.Error), Node: node,
		})
	}
	return out
}
