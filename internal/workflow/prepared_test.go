package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	pawl "github.com/pawlrun/pawl"
)

// what is stored, and given to mutate and next.
func TestPreparedIsKeptAsItWasReturned(t *testing.T) {
	c := Consumer{Name: "addRow", Subscribe: []string{"a", "b"}}
	for raw, want := range map[string]Prepared{
		`{"reservations":[]}`: {Reservations: []Reservation{}, Data: json.RawMessage("null")},
		`{"data":{"x":[1.50,"é"]},"reservations":[{"topic":"b","ids":["1","2"]},{"ids":["1"],"topic":"a"},{"topic":"b","ids":[]}],"ui":{"title":" Add a row "},"wakeAt":"2026-03-28T13:00:00Z"}`: {
			Reservations: []Reservation{{"b", []string{"1", "2"}}, {"a", []string{"1"}}, {"b", []string{}}},
			Data:         json.RawMessage(`{"x":[1.50,"é"]}`), UI: &PreparedUI{Title: "Add a row"}, WakeAt: "2026-03-28T13:00:00.000Z",
		},
		`{"reservations":[],"data":null,"ui":null,"wakeAt":null}`: {Reservations: []Reservation{}, Data: json.RawMessage("null")},
		`{"reservations":[],"ui":{}}`:                             {Reservations: []Reservation{}, Data: json.RawMessage("null")},
		`{"reservations":[],"ui":{"title":null},"data":false}`:    {Reservations: []Reservation{}, Data: json.RawMessage("false")},
	} {
		p, err := CheckPrepared(json.RawMessage(raw), true, c, wakeNow)
		if diff := cmp.Diff(want, p); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", raw, err, diff)
			continue
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var again Prepared
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("stored and read again: %s", diff)
		}
		reserved := 0
		for _, r := range want.Reservations {
			reserved += len(r.IDs)
		}
		if p.Reserved() != reserved {
			t.Errorf("%s reserves %d", raw, p.Reserved())
		}
	}
}

// each violation has a message of its own.
func TestPreparedThatIsWrongIsRefused(t *testing.T) {
	const nothing = "when there is nothing to do, return { reservations: [], data: {} }"
	messages := map[string]bool{}
	for raw, want := range map[string]string{
		``:                                 `prepare must return an object, not nothing | ` + nothing,
		`null`:                             `prepare must return an object, not null | ` + nothing,
		`[]`:                               `prepare must return an object, not a list | ` + nothing,
		`5`:                                `prepare must return an object, not a number | ` + nothing,
		`"x"`:                              `prepare must return an object, not a string | ` + nothing,
		`{}`:                               `prepare returned no reservations | ` + reservationsHint,
		`{"reservations":null}`:            `reservations must be a list, not null | ` + reservationsHint,
		`{"reservations":{}}`:              `reservations must be a list, not an object | ` + reservationsHint,
		`{"reservation":[]}`:               `prepare returned the unknown field "reservation" | did you mean "reservations"?`,
		`{"reservations":[],"wakeat":"x"}`: `prepare returned the unknown field "wakeat" | did you mean "wakeAt"?`,
		`{"reservations":[],"state":1}`:    `prepare returned the unknown field "state" | the fields are reservations, data, ui, wakeAt`,
		`{"reservations":["x"]}`:           `reservations[0] must be an object, not a string | ` + reservationsHint,
		`{"reservations":[{"topic":"a","ids":[]},null]}`:                                                   `reservations[1] must be an object, not null | ` + reservationsHint,
		`{"reservations":[{"topic":"a","id":["1"]}]}`:                                                      `reservations[0] has the unknown field "id" | did you mean "ids"?`,
		`{"reservations":[{"ids":["1"]}]}`:                                                                 `reservations[0].topic must be a string, not nothing | `,
		`{"reservations":[{"topic":1,"ids":["1"]}]}`:                                                       `reservations[0].topic must be a string, not a number | `,
		`{"reservations":[{"topic":"z","ids":["1"]}]}`:                                                     `reservations[0].topic is "z", to which the consumer does not subscribe | it subscribes to "a", "b"`,
		`{"reservations":[{"topic":"a"}]}`:                                                                 `reservations[0].ids must be a list, not nothing | ids is a list of messageId`,
		`{"reservations":[{"topic":"a","ids":"1"}]}`:                                                       `reservations[0].ids must be a list, not a string | ids is a list of messageId`,
		`{"reservations":[{"topic":"a","ids":["1",2]}]}`:                                                   `reservations[0].ids[1] must be a string, not a number | ids is a list of messageId`,
		`{"reservations":[{"topic":"a","ids":[""]}]}`:                                                      `reservations[0].ids[0] is empty | ids is a list of messageId`,
		`{"reservations":[{"topic":"a","ids":["1","1"]}]}`:                                                 `event "1" of topic "a" is reserved twice | name each event once`,
		`{"reservations":[{"topic":"a","ids":["2"]},{"topic":"b","ids":["2"]},{"topic":"a","ids":["2"]}]}`: `event "2" of topic "a" is reserved twice | name each event once`,
		`{"reservations":[],"ui":"x"}`:                                                                     `ui must be an object, not a string | write ui: { title: "..." }`,
		`{"reservations":[],"ui":{"titel":"x"}}`:                                                           `ui has the unknown field "titel" | did you mean "title"?`,
		`{"reservations":[],"ui":{"title":1}}`:                                                             `ui.title must be a string, not a number | `,
		`{"reservations":[],"wakeAt":1774699200000}`:                                                       `wakeAt must be a string, not a number | use a time of ISO 8601, such as date.toISOString()`,
		`{"reservations":[],"wakeAt":{}}`:                                                                  `wakeAt must be a string, not an object | use a time of ISO 8601, such as date.toISOString()`,
		`{"reservations":[]`:                                                                               `what prepare returned cannot be read as JSON | `,
		`{"reservations":[`:                                                                                `what prepare returned cannot be read as JSON | `,
	} {
		p, err := CheckPrepared(json.RawMessage(raw), raw != "", Consumer{Name: "c", Subscribe: []string{"a", "b"}}, wakeNow)
		e, ok := errors.AsType[*pawl.Error](err)
		if !ok || e.Code != pawl.CodeInvalid || !cmp.Equal(p, Prepared{}) {
			t.Errorf("%s: %+v %v", raw, p, err)
			continue
		}
		if got := e.Msg + " | " + e.Hint; got != `consumer "c": `+want {
			t.Errorf("%s:\ngot  %s\nwant %s", raw, got, want)
		}
		messages[e.Msg] = true
	}
	if len(messages) < 25 {
		t.Errorf("there are only %d messages", len(messages))
	}
}

func TestReservationsAreLimited(t *testing.T) {
	ids := make([]string, MaxReserved+1)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	c := Consumer{Name: "c", Subscribe: []string{"a"}}
	result := func(reservations ...Reservation) json.RawMessage {
		text, err := json.Marshal(map[string]any{"reservations": reservations})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if p, err := CheckPrepared(result(Reservation{"a", ids[:600]}, Reservation{"a", ids[600:1000]}), true, c, wakeNow); err != nil || p.Reserved() != 1000 {
		t.Errorf("1000 events: %v", err)
	}
	const want = `consumer "c": prepare reserved 1001 events; at most 1000 are allowed`
	for _, raw := range []json.RawMessage{
		result(Reservation{"a", ids[:600]}, Reservation{"a", ids[600:]}),
		json.RawMessage(`{"reservations":[` + strings.Repeat("{},", 1000) + `{}]}`),
	} {
		_, err := CheckPrepared(raw, true, c, wakeNow)
		if e, ok := errors.AsType[*pawl.Error](err); !ok || e.Msg != want {
			t.Errorf("1001 events: %v", err)
		}
	}
}

func TestTitleIsOneLineOfBoundedLength(t *testing.T) {
	for title, want := range map[string]string{
		"Add a row":                   "Add a row",
		"two\nlines\tand\x1b[31m red": "two lines and[31m red",
		"pay \u202eelbanosaer\u202c":  "pay elbanosaer",
		"👩\u200d🌾 grows":              "👩\u200d🌾 grows",
		" \n\x00 ":                    "",
		strings.Repeat("é", 300):      strings.Repeat("é", 200),
	} {
		raw, err := json.Marshal(map[string]any{"reservations": []any{}, "ui": map[string]any{"title": title}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := CheckPrepared(raw, true, Consumer{}, wakeNow)
		got := ""
		if p.UI != nil {
			got = p.UI.Title
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, want %q (%v)", title, got, want, err)
		}
	}
}

// whatever a script returns, it is refused or it is within the limits.
func FuzzCheckPrepared(f *testing.F) {
	f.Add([]byte(`{"reservations":[{"topic":"a","ids":["1","2"]}],"data":{},"ui":{"title":"x"},"wakeAt":"2026-03-28T13:00:00Z"}`))
	f.Add([]byte(`{"reservations":[{"topic":"a","ids":["\ud800"]}],"data":[[[]]]}`))
	f.Add([]byte(`{"reservations":{},"wakeAt":5}`))
	f.Add([]byte(` {"reservations":[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := CheckPrepared(raw, true, Consumer{Name: "c", Subscribe: []string{"a"}}, wakeNow)
		if err != nil {
			if !errors.Is(err, pawl.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			return
		}
		if p.Reservations == nil || p.Reserved() > MaxReserved || p.UI != nil && utf8.RuneCountInString(p.UI.Title) > 200 {
			t.Errorf("got %+v", p)
		}
		if at := p.Wake(); p.WakeAt != "" && (at.Before(wakeNow.Add(WakeMin)) || at.After(wakeNow.Add(WakeMax))) {
			t.Errorf("it wakes at %s", p.WakeAt)
		}
		if _, err := json.Marshal(p); err != nil {
			t.Errorf("it cannot be stored: %v", err)
		}
	})
}
