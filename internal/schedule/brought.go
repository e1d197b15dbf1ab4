package schedule

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/execution/work"
	"github.com/pawlrun/pawl/internal/store/schedulestore"
)

// rowsOf is how many rows an execution that ended well tells of: the number rows of the
// object that a graph or a job returned, that a URL answered with, or that is the last
// line of a command. nil is none.
func rowsOf(sch schedulestore.Schedule, answer contract.RunAnswerV1) *int64 {
	told := []byte(answer.Output)
	if !answer.OK || !bytes.Contains(told, []byte("rows")) {
		return nil
	}
	if work.Is(sch.GraphID) {
		told = toldBy(told)
	}
	var out struct {
		Rows *int64 `json:"rows"`
	}
	if json.Unmarshal(told, &out) != nil || out.Rows == nil || *out.Rows < 0 {
		return nil
	}
	return out.Rows
}

// toldBy is what a plain run returned.
func toldBy(output []byte) []byte {
	var out client.PlainOutput
	if json.Unmarshal(output, &out) != nil {
		return nil
	}
	switch {
	case len(out.Result) > 0:
		return out.Result
	case out.Body != "":
		return []byte(out.Body)
	}
	text := strings.TrimSpace(out.Stdout)
	return []byte(text[strings.LastIndexByte(text, '\n')+1:])
}
