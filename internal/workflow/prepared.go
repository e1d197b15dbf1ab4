package workflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pawlrun/pawl"
)

// Prepared is what prepare returned, checked. It is stored in the run as JSON,
// and is what mutate and next get.
type Prepared struct {
	Reservations []Reservation   `json:"reservations"`
	Data         json.RawMessage `json:"data"` // null when the script gave none
	UI           *PreparedUI     `json:"ui,omitempty"`
	// WakeAt is an instant in pawl.TimeFormat, within the host's bounds.
	WakeAt string `json:"wakeAt,omitempty"`
	// WakeAtAsked is what the script wrote, when WakeAt is another instant
	// because of the bounds or because it could not be read.
	WakeAtAsked string `json:"wakeAtAsked,omitempty"`
}

// Reservation names events of one topic that the run takes.
type Reservation struct {
	Topic string   `json:"topic"`
	IDs   []string `json:"ids"` // each is a messageId
}

// PreparedUI is what people are shown. It comes from the script and proves
// nothing.
type PreparedUI struct {
	Title string `json:"title"`
}

const (
	// MaxReserved is the most events that one run may take.
	MaxReserved = 1000

	mostTitle = 200 // characters
)

// Reserved is how many events the run takes.
func (p Prepared) Reserved() int {
	n := 0
	for _, r := range p.Reservations {
		n += len(r.IDs)
	}
	return n
}

// CheckPrepared checks what the prepare of a consumer returned at an instant.
// What is wrong with it is an error with pawl.CodeInvalid, and a fault of the
// script; but for wakeAt, which is clamped. Whether the events
// exist and are pending is for the store to say.
func CheckPrepared(raw json.RawMessage, hasValue bool, c Consumer, now time.Time) (Prepared, error) {
	result := value{}
	if hasValue {
		result.raw = raw
	}
	o, ok := result.object()
	switch {
	case !ok && result.kind() == "an object":
		return Prepared{}, c.badResult("", "what prepare returned cannot be read as JSON")
	case !ok:
		return Prepared{}, c.badResult("when there is nothing to do, return { reservations: [], data: {} }",
			"prepare must return an object, not %s", result.kind())
	}
	if err := c.checkFields("", o, "reservations", "data", "ui", "wakeAt"); err != nil {
		return Prepared{}, err
	}
	p := Prepared{Data: json.RawMessage("null")}
	if o.has("data") {
		p.Data = o.get("data").raw
	}
	var err error
	if p.Reservations, err = c.checkReservations(o); err != nil {
		return Prepared{}, err
	}
	if p.UI, err = c.checkUI(o.get("ui")); err != nil {
		return Prepared{}, err
	}
	if err := c.checkWake(o.get("wakeAt"), now, &p); err != nil {
		return Prepared{}, err
	}
	return p, nil
}

const reservationsHint = `write reservations: [{ topic: "mail.received", ids: [event.messageId] }], or [] for none`

func (c Consumer) checkReservations(o object) ([]Reservation, error) {
	if !o.has("reservations") {
		return nil, c.badResult(reservationsHint, "prepare returned no reservations")
	}
	entries, ok := o.get("reservations").list()
	if !ok {
		return nil, c.badResult(reservationsHint, "reservations must be a list, not %s", o.get("reservations").kind())
	}
	if len(entries) > MaxReserved {
		return nil, c.tooMany(len(entries))
	}
	reservations := make([]Reservation, 0, len(entries))
	seen := map[[2]string]bool{}
	for i, entry := range entries {
		r, err := c.checkReservation(fmt.Sprintf("reservations[%d]", i), entry)
		if err != nil {
			return nil, err
		}
		for _, id := range r.IDs {
			event := [2]string{r.Topic, id}
			if seen[event] {
				return nil, c.badResult("name each event once", "event %s of topic %s is reserved twice", quoted(id), quoted(r.Topic))
			}
			seen[event] = true
		}
		reservations = append(reservations, r)
	}
	if len(seen) > MaxReserved {
		return nil, c.tooMany(len(seen))
	}
	return reservations, nil
}

func (c Consumer) tooMany(n int) error {
	return c.badResult("take fewer; the consumer runs again for those that are left",
		"prepare reserved %d events; at most %d are allowed", n, MaxReserved)
}

func (c Consumer) checkReservation(at string, entry value) (Reservation, error) {
	o, ok := entry.object()
	if !ok {
		return Reservation{}, c.badResult(reservationsHint, "%s must be an object, not %s", at, entry.kind())
	}
	if err := c.checkFields(at, o, "topic", "ids"); err != nil {
		return Reservation{}, err
	}
	topic, ok := o.get("topic").text()
	if !ok {
		return Reservation{}, c.badResult("", "%s.topic must be a string, not %s", at, o.get("topic").kind())
	}
	if !slices.Contains(c.Subscribe, topic) {
		return Reservation{}, c.badResult("it subscribes to "+quotedList(c.Subscribe),
			"%s.topic is %s, to which the consumer does not subscribe", at, quoted(topic))
	}
	elements, ok := o.get("ids").list()
	if !ok {
		return Reservation{}, c.badResult("ids is a list of messageId", "%s.ids must be a list, not %s", at, o.get("ids").kind())
	}
	r := Reservation{Topic: topic, IDs: make([]string, len(elements))}
	for i, element := range elements {
		id, ok := element.text()
		switch {
		case !ok:
			return Reservation{}, c.badResult("ids is a list of messageId", "%s.ids[%d] must be a string, not %s", at, i, element.kind())
		case id == "":
			return Reservation{}, c.badResult("ids is a list of messageId", "%s.ids[%d] is empty", at, i)
		}
		r.IDs[i] = id
	}
	return r, nil
}

func (c Consumer) checkUI(ui value) (*PreparedUI, error) {
	if ui.kind() == "nothing" || ui.isNull() {
		return nil, nil //nolint:nilnil // a label is optional
	}
	o, ok := ui.object()
	if !ok {
		return nil, c.badResult(`write ui: { title: "..." }`, "ui must be an object, not %s", ui.kind())
	}
	if err := c.checkFields("ui", o, "title"); err != nil {
		return nil, err
	}
	field := o.get("title")
	title, ok := field.text()
	if !ok && field.kind() != "nothing" && !field.isNull() {
		return nil, c.badResult("", "ui.title must be a string, not %s", field.kind())
	}
	if title = cleanTitle(title); title == "" {
		return nil, nil //nolint:nilnil // an empty label is none
	}
	return &PreparedUI{Title: title}, nil
}

// cleanTitle makes a label one line of bounded length. Control characters go,
// and so do those that reverse the direction of text: people decide by what
// they read.
func cleanTitle(title string) string {
	title = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, title)
	return strings.TrimSpace(cutText(strings.TrimSpace(title), mostTitle))
}

func (c Consumer) checkWake(asked value, now time.Time, p *Prepared) error {
	if asked.kind() == "nothing" || asked.isNull() {
		return nil
	}
	text, ok := asked.text()
	if !ok {
		return c.badResult(`use a time of ISO 8601, such as date.toISOString()`, "wakeAt must be a string, not %s", asked.kind())
	}
	at, asWritten := clampWake(text, now)
	p.WakeAt = pawl.FormatTime(at)
	if !asWritten {
		p.WakeAtAsked = cmp.Or(cutText(text, mostWakeAsked), `""`)
	}
	return nil
}

// checkFields refuses a field that does not belong to an object; at is where
// the object is, empty for the result itself.
func (c Consumer) checkFields(at string, o object, known ...string) error {
	unknown := o.unknown(known)
	switch {
	case len(unknown) == 0:
		return nil
	case at == "":
		return c.badResult(unknownField(unknown[0], known), "prepare returned the unknown field %s", quoted(unknown[0]))
	}
	return c.badResult(unknownField(unknown[0], known), "%s has the unknown field %s", at, quoted(unknown[0]))
}

// badResult is what prepare must not return.
func (c Consumer) badResult(hint, format string, args ...any) error {
	return &pawl.Error{
		Code: pawl.CodeInvalid, Op: "check what prepare returned",
		Msg: fmt.Sprintf("consumer %s: ", quoted(c.Name)) + fmt.Sprintf(format, args...), Hint: hint,
	}
}
