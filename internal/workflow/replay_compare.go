package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// mostShown is how many characters of a value a difference quotes.
const mostShown = 300

// differences says in words what one set of effects has and the other has not.
// Values are compared as they are, and told without secrets and cut.
func differences(then, now Effects, redact func(json.RawMessage) json.RawMessage) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	show := func(raw json.RawMessage) string { return cutShown(canonical(redact(raw))) }
	if a, b := asJSON(then.Reservations), asJSON(now.Reservations); canonical(a) != canonical(b) {
		say("it took %s and would take %s", show(a), show(b))
	}
	if canonical(then.Data) != canonical(now.Data) {
		say("prepare gave %s and would give %s", show(then.Data), show(now.Data))
	}
	switch {
	case then.Call != nil && now.Call == nil:
		say("it called %s.%s and would call nothing", then.Call.Tool, then.Call.Method)
	case then.Call == nil && now.Call != nil:
		say("it called nothing and would call %s.%s %s", now.Call.Tool, now.Call.Method, show(now.Call.Arguments))
	case then.Call != nil && !sameCall(*then.Call, *now.Call, redact):
		say("it called %s.%s %s and would call %s.%s %s", then.Call.Tool, then.Call.Method, show(then.Call.Arguments), now.Call.Tool, now.Call.Method, show(now.Call.Arguments))
	}
	for _, e := range then.Events {
		if i := indexOf(now.Events, e); i < 0 {
			say("it published %s %s and would not", e.Topic, e.MessageID)
		} else if canonical(e.Payload) != canonical(now.Events[i].Payload) {
			say("it published %s %s with %s and would with %s", e.Topic, e.MessageID, show(e.Payload), show(now.Events[i].Payload))
		}
	}
	for _, e := range now.Events {
		if indexOf(then.Events, e) < 0 {
			say("it would publish %s %s", e.Topic, e.MessageID)
		}
	}
	if canonical(then.State) != canonical(now.State) {
		say("it kept %s and would keep %s", show(then.State), show(now.State))
	}
	return out
}

// sameCall reports whether a call is the one that was recorded, with its
// arguments or with those that a person was shown.
func sameCall(then, now TriedCall, redact func(json.RawMessage) json.RawMessage) bool {
	was := canonical(then.Arguments)
	return then.Tool == now.Tool && then.Method == now.Method && (was == canonical(now.Arguments) || was == canonical(redact(now.Arguments)))
}

// failureDifference says how the end of a replay differs from that of the run;
// it is empty if it does not.
func failureDifference(r runstore.Run, failure string, class pawl.Class) string {
	failed := r.ErrorClass != "" && r.Status != pawl.StatusCommitted
	switch {
	case failed && failure == "":
		return "it failed and would not: " + cutShown(r.ErrorMessage)
	case !failed && failure != "":
		return "it would fail: " + cutShown(failure)
	case failed && (failure != r.ErrorMessage || class != r.ErrorClass):
		return fmt.Sprintf("it failed (%s) and would fail otherwise (%s): %s", cutShown(r.ErrorMessage), class, cutShown(failure))
	}
	return ""
}

func cutShown(text string) string {
	if short := cutText(text, mostShown); len(short) < len(text) {
		return short + "..."
	}
	return text
}

func indexOf(list []eventstore.NewEvent, e eventstore.NewEvent) int {
	return slices.IndexFunc(list, func(have eventstore.NewEvent) bool { return have.Topic == e.Topic && have.MessageID == e.MessageID })
}

func asJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(fmt.Sprintf("%q", fmt.Sprint(v)))
	}
	return raw
}

// canonical is JSON in one spelling; nothing is "nothing". Numbers are kept
// digit by digit: two amounts that a float cannot tell apart are two amounts.
func canonical(raw json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if len(raw) == 0 || decoder.Decode(&value) != nil || value == nil {
		return "nothing"
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return string(raw)
	}
	return strings.TrimSuffix(text.String(), "\n")
}
