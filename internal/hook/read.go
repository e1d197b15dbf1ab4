package hook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/internal/hook/spec"
	"github.com/pawlrun/pawl/internal/store"
)

// longestID is the most bytes of a delivery's id.
const longestID = 256

// incoming is a delivery that is believed and could be read.
type incoming struct {
	id      string
	headers map[string]string
	body    json.RawMessage
	value   any   // the body, with numbers as they are written
	bytes   int64 // of the body as it came
}

// read makes sense of a delivery. Its errors say what is wrong with it.
func (t *target) read(h http.Header, raw []byte) (in incoming, err error) {
	in.headers, in.bytes = t.kept(h), int64(len(raw))
	if in.body, err = asJSON(h.Get("Content-Type"), raw); err != nil {
		return in, err
	}
	if in.value, err = decode(in.body); err != nil {
		return in, err
	}
	in.id, err = t.idOf(h, in.value, raw)
	return in, err
}

// idOf is what tells a delivery from others.
func (t *target) idOf(h http.Header, body any, raw []byte) (id string, err error) {
	at, named := t.definition.ID()
	if at.Header != "" {
		if len(h.Values(at.Header)) > 1 {
			return "", fmt.Errorf("the header %s is there twice", at.Header)
		}
		id = h.Get(at.Header)
	} else if len(at.Path) > 0 {
		value, _ := at.In(body)
		id, _ = spec.Text(value)
	}
	switch {
	case id == "" && named:
		return "", fmt.Errorf("it has no id in %s", idPlace(at))
	case id == "" && len(raw) == 0: // nothing tells it from others, and nothing says that it is the same
		return store.NewID(), nil
	case id == "":
		return t.digest(h, raw), nil
	case len(id) > longestID || !store.Storable(id):
		return "", fmt.Errorf("its id has more than %d bytes, or is no text", longestID)
	}
	return id, nil
}

// digest tells deliveries apart that have no id: by their body, and by when they
// were signed where that is signed.
func (t *target) digest(h http.Header, raw []byte) string {
	sum := sha256.New()
	if settings := t.definition.Settings(); settings.Timed() {
		for _, name := range []string{settings.Timestamp, "X-Slack-Request-Timestamp"} {
			if name != "" {
				_, _ = sum.Write([]byte(h.Get(name) + "\n"))
			}
		}
	}
	_, _ = sum.Write(raw)
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func idPlace(at spec.Selector) string {
	if at.Header != "" {
		return "the header " + at.Header
	}
	return "the body at " + strings.Join(at.Path, ".")
}

// asJSON is a body as JSON: as it is, or the fields of a form. A form whose one
// field is payload is what is in there, as GitHub and Slack send it.
func asJSON(contentType string, raw []byte) (json.RawMessage, error) {
	kind, _, _ := mime.ParseMediaType(contentType)
	text := bytes.TrimSpace(raw)
	switch {
	case len(text) == 0:
		return json.RawMessage("null"), nil
	case text[0] == '{' || text[0] == '[': // no form begins like this, whatever it is called
	case kind == "application/x-www-form-urlencoded":
		fields, err := url.ParseQuery(string(raw))
		if err != nil {
			return nil, errors.New("the form cannot be read")
		}
		if payload := fields["payload"]; len(fields) == 1 && len(payload) == 1 {
			return checked([]byte(payload[0]))
		}
		out := map[string]any{}
		for name, values := range fields {
			if out[name] = values; len(values) == 1 {
				out[name] = values[0]
			}
		}
		return json.Marshal(out)
	}
	return checked(raw)
}

func checked(text []byte) (json.RawMessage, error) {
	if !utf8.Valid(text) || !json.Valid(text) {
		return nil, errors.New("the body is not JSON")
	}
	return text, nil
}

func decode(body json.RawMessage) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, errors.New("the body is not JSON")
	}
	return value, nil
}

// unfit tells why a delivery is none that the hook is for; empty if it is.
func (t *target) unfit(in incoming) string {
	var texts []string
	for text := range t.definition.When {
		texts = append(texts, text)
	}
	slices.Sort(texts)
	for _, text := range texts {
		wanted := t.definition.When[text]
		at, err := spec.ParseSelector(text)
		if err != nil {
			return text + " cannot be read"
		}
		var found string
		var ok bool
		if at.Header != "" {
			found, ok = in.headers[at.Header]
		} else if value, there := at.In(in.value); there {
			found, ok = spec.Text(value)
		}
		switch {
		case !ok:
			return fmt.Sprintf("%s is not there", text)
		case !slices.Contains(wanted, found):
			return fmt.Sprintf("%s is %s, not %s", text, shortened(found), strings.Join(wanted, " or "))
		}
	}
	return ""
}

func shortened(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}
