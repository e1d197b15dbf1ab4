package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/execution/contract"
	"github.com/pawlrun/pawl/internal/visible"
)

// Body is what a graph is told about its run:
//
//	{runId, attempt, scheduleId, scheduledFor, graphId, billingAccountId, input}
//
// and resume, if a person answered the graph's question. The key of the caller
// is not in it.
func Body(r Run) ([]byte, error) {
	body := struct {
		RunID        string          `json:"runId"`
		Attempt      int             `json:"attempt"`
		ScheduleID   string          `json:"scheduleId,omitempty"`
		ScheduledFor string          `json:"scheduledFor,omitempty"`
		GraphID      string          `json:"graphId"`
		AccountID    string          `json:"billingAccountId,omitempty"`
		Input        json.RawMessage `json:"input"`
		Resume       json.RawMessage `json:"resume,omitempty"`
	}{r.RunID, r.Attempt, r.ScheduleID, "", r.GraphID, r.Caller.AccountID, r.Input, r.Resume}
	if !r.ScheduledFor.IsZero() {
		body.ScheduledFor = pawl.FormatTime(r.ScheduledFor)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("describe the run: %w", err)
	}
	return raw, nil
}

// ReadAnswer reads what a graph answers and tells its usage:
//
//	{ok, output, traceId, error: {code, message}, interrupt,
//	 usage: [{unit, model, inputTokens, cachedInputTokens, outputTokens, costUsd}]}
//
// It is not readable unless it is an object whose ok is true or false. What is
// wrong in other fields is left out, and told as progress: a graph that did
// its work is not run again because of a number. The error is emit's.
func ReadAnswer(raw []byte, emit func(Event) error) (result Result, readable bool, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return Result{}, false, nil //nolint:nilerr // it is told by readable
	}
	var ok *bool
	if json.Unmarshal(fields["ok"], &ok) != nil || ok == nil {
		return Result{}, false, nil //nolint:nilerr // it is told by readable
	}
	if err := emitUsage(fields["usage"], emit); err != nil {
		return Result{}, true, err
	}
	switch {
	case present(fields["interrupt"]):
		result = Result{Interrupt: fields["interrupt"]}
	case *ok:
		result = Result{OK: true, Output: fields["output"]}
	default:
		result = readFailure(fields["error"])
	}
	result.TraceID = Excerpt(text(fields["traceId"]))
	return result, true, nil
}

// ErrorOf is the code and the message of the error in an answer, if there is one.
func ErrorOf(raw []byte) (code, message string) {
	var answer, fields map[string]json.RawMessage
	if json.Unmarshal(raw, &answer) != nil || json.Unmarshal(answer["error"], &fields) != nil {
		return "", ""
	}
	return text(fields["code"]), Excerpt(text(fields["message"]))
}

func readFailure(raw json.RawMessage) Result {
	code, message := ErrorOf(fmt.Appendf(nil, `{"error":%s}`, orNull(raw)))
	// What is wrong with a grant is for Pawl to say.
	if known := contract.ErrorCode(code); !known.Valid() || known.IsGrant() {
		code = CodeInternal
	}
	if message == "" {
		message = "the graph failed and did not say why"
	}
	return Failure(code, message)
}

func emitUsage(raw json.RawMessage, emit func(Event) error) error {
	if !present(raw) {
		return nil
	}
	var units []map[string]json.RawMessage
	if json.Unmarshal(raw, &units) != nil {
		return emit(Progress("the usage is not a list of units; nothing of it was recorded"))
	}
	for i, fields := range units {
		usage := Usage{Unit: text(fields["unit"]), Model: text(fields["model"])}
		faults := []string{
			readCount(fields, "inputTokens", &usage.InputTokens),
			readCount(fields, "cachedInputTokens", &usage.CachedTokens),
			readCount(fields, "outputTokens", &usage.OutputTokens),
			readCost(fields["costUsd"], &usage),
		}
		if err := emit(Event{Kind: KindUsage, Usage: &usage}); err != nil {
			return err
		}
		if told := strings.Join(slices.DeleteFunc(faults, func(f string) bool { return f == "" }), ", "); told != "" {
			if err := emit(Progress(fmt.Sprintf("usage %d: %s cannot be read, and left out", i+1, told))); err != nil {
				return err
			}
		}
	}
	return nil
}

// readCount reads a number of tokens; the fault is empty if it can be read, or
// is not there.
func readCount(fields map[string]json.RawMessage, name string, into *int64) (fault string) {
	if !present(fields[name]) {
		return ""
	}
	n, err := strconv.ParseInt(string(fields[name]), 10, 64)
	if err != nil || n < 0 {
		return name
	}
	*into = n
	return ""
}

func readCost(raw json.RawMessage, into *Usage) (fault string) {
	if !present(raw) {
		return ""
	}
	var cost pawl.USD
	if json.Unmarshal(raw, &cost) != nil || cost < 0 {
		return "costUsd"
	}
	into.Cost, into.CostTold = cost, true
	return ""
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// text is the value of a JSON text; empty for anything else.
func text(raw json.RawMessage) string {
	var value string
	_ = json.Unmarshal(raw, &value) // anything else is no text
	return value
}

// Excerpt makes foreign text fit for a message.
func Excerpt(text string) string { return visible.Excerpt(text, 1000) }
