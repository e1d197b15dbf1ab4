package spec

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/hook/verify"
	"github.com/pawlrun/pawl/internal/when"
)

const (
	mostSecrets      = 10
	longestTolerance = 24 * time.Hour
)

// Schema is the JSON Schema of a definition.
func Schema() []byte {
	return definition.Schema(Kind, "Hook", "Which deliveries a webhook takes, whom it believes, and what they become.", Definition{})
}

// DescribeSchema says that a delivery becomes one thing.
func (Definition) DescribeSchema(s *jsonschema.Schema) {
	s.Properties["maxBytes"].Default = json.RawMessage(`"1MiB"`)
	priority := s.Properties["job"].Properties["priority"]
	priority.Minimum, priority.Maximum = new(-1.0), new(1.0)
	for _, one := range []string{"publish", "job", "run"} {
		s.OneOf = append(s.OneOf, &jsonschema.Schema{Required: []string{one}})
	}
}

// FromJSON reads a definition as the API takes it: the kind may be left out.
func FromJSON(raw []byte) (Definition, error) {
	doc, err := definition.ReadJSON(raw)
	if err != nil {
		return Definition{}, err
	}
	d, faults := FromDocument(doc)
	return d, definition.Invalid("read hook", faults)
}

// Parse reads a file of YAML, whose documents all define hooks.
func Parse(file string, text []byte) ([]Definition, error) {
	documents, err := definition.Read(file, text)
	if err != nil {
		return nil, err
	}
	var list []Definition
	var faults []pawl.Field
	for _, doc := range documents {
		d, wrong := FromDocument(doc)
		list, faults = append(list, d), append(faults, wrong...)
	}
	return list, definition.Invalid("read hooks", faults)
}

// FromDocument reads one definition and tells every fault with its place. Secrets
// stay as they are written; see Resolve.
func FromDocument(doc definition.Document) (Definition, []pawl.Field) {
	if doc.Kind != "" && doc.Kind != Kind {
		return Definition{}, []pawl.Field{doc.Fault("/kind", "kind %s does not belong here. The kind of a hook is hook.", pawl.Quote(doc.Kind))}
	}
	var d Definition
	c := checker{&d, doc.Check(&d)}
	c.effect(doc)
	c.verify()
	c.selectors()
	return d, c.faults.Fields()
}

type checker struct {
	d      *Definition
	faults *definition.Faults
}

// effect checks that a delivery becomes one thing.
func (c checker) effect(doc definition.Document) {
	var given []string
	for _, one := range []string{"publish", "job", "run"} {
		if doc.Has("/" + one) {
			given = append(given, one)
		}
	}
	switch {
	case len(given) == 0:
		c.faults.Add("", "a hook needs publish, job or run: what a delivery becomes")
	case len(given) > 1:
		c.faults.Add("/"+given[1], "%s and %s cannot go together: a delivery becomes one thing", given[0], given[1])
	}
	if c.d.Publish != nil {
		c.payload("/publish/payload", c.d.Publish.Payload)
	}
	if c.d.Job != nil {
		if c.d.Job.Priority < -1 || c.d.Job.Priority > 1 {
			c.faults.Add("/job/priority", "priority must be from -1 to 1")
		}
		var text string
		if json.Unmarshal(c.d.Job.Payload, &text) == nil {
			c.payload("/job/payload", text)
		}
	}
}

// WholeDelivery is the payload that has headers as well.
const WholeDelivery = "delivery"

func (c checker) payload(pointer, text string) {
	at, err := ParseSelector(text)
	if text != WholeDelivery && (err != nil || at.Header != "") {
		c.faults.Add(pointer, "payload %s is not known. It is body, body:PATH or delivery.", pawl.Quote(text))
	}
}

// verify checks who is believed.
func (c checker) verify() {
	v := c.d.Verify
	if c.faults.At("/verify") {
		return
	}
	if len(v.Secret) == 0 {
		c.faults.Add("/verify/secret", "secret is missing: a hook without one would believe everybody")
	}
	if len(v.Secret) > mostSecrets {
		c.faults.Add("/verify/secret", "there are %d secrets; at most %d are allowed", len(v.Secret), mostSecrets)
	}
	for _, secret := range v.Secret {
		if strings.TrimSpace(secret) == "" {
			c.faults.Add("/verify/secret", "a secret is empty")
		}
	}
	for _, only := range []struct {
		field, value string
		schemes      []string
	}{
		{"header", v.Header, []string{verify.HMAC, verify.Token}},
		{"algorithm", v.Algorithm, []string{verify.HMAC}},
		{"encoding", v.Encoding, []string{verify.HMAC}},
		{"prefix", v.Prefix, []string{verify.HMAC}},
		{"timestamp", v.Timestamp, []string{verify.HMAC}},
	} {
		if only.value != "" && !strings.Contains(strings.Join(only.schemes, " "), v.Scheme) {
			c.faults.Add("/verify/"+only.field, "%s is for the scheme %s", only.field, strings.Join(only.schemes, " and "))
		}
	}
	for _, header := range []struct{ field, value string }{{"header", v.Header}, {"timestamp", v.Timestamp}} {
		if header.value != "" && !isHeader(header.value) {
			c.faults.Add("/verify/"+header.field, "%s is not the name of a header", pawl.Quote(header.value))
		}
	}
	c.tolerance()
}

func (c checker) tolerance() {
	text := c.d.Verify.Tolerance
	if text == "" {
		return
	}
	length, err := parseTolerance(text)
	switch {
	case err != nil || length <= 0 || length > longestTolerance:
		c.faults.Add("/verify/tolerance", "tolerance %s is not a length of time from 1s to 1d, such as 5m", pawl.Quote(text))
	case !c.d.Settings().Timed():
		c.faults.Add("/verify/tolerance", "the scheme %s signs no time, so that deliveries do not grow old", c.d.Verify.Scheme)
	}
}

func parseTolerance(text string) (time.Duration, error) { return when.ParseInterval(text) }

// selectors checks the places in a delivery that are named.
func (c checker) selectors() {
	if c.d.DeliveryID != "" {
		c.selector("/deliveryId", c.d.DeliveryID)
	}
	for name := range c.d.When {
		c.selector("/when"+definition.Pointer(name), name)
	}
}

func (c checker) selector(pointer, text string) {
	at, err := ParseSelector(text)
	switch {
	case err != nil:
		c.faults.Add(pointer, "%s: %s", pawl.Quote(text), err)
	case at.Header == "" && len(at.Path) == 0:
		c.faults.Add(pointer, "%s is all of the body; name a part, such as body:id", pawl.Quote(text))
	case at.Header != "" && c.d.Settings().Secret(at.Header):
		c.faults.Add(pointer, "the header %s is a secret, which is not kept", at.Header)
	}
}

// Resolve finds the secrets of a definition that comes over the API or out of the
// database: each must be one reference to the environment. Its errors name no
// secret.
func (d Definition) Resolve(getenv func(string) string) ([]string, []pawl.Field) {
	var out []string
	for _, written := range d.Verify.Secret {
		value, err := definition.FromEnvironment(written, getenv)
		if err != nil {
			hint := ""
			if _, ok := definition.Reference(written); !ok {
				hint = ": secrets are not stored, so write ${NAME} and set NAME for the server"
			}
			return nil, []pawl.Field{{Pointer: "/verify/secret", Message: err.Error() + hint}}
		}
		out = append(out, value)
	}
	return out, d.tried(out)
}

// ResolveFile finds the secrets of a definition in a file of a served folder, which
// may also be files, or stand there as they are.
func (d Definition) ResolveFile(doc definition.Document, getenv func(string) string) ([]string, []pawl.Field) {
	var out []string
	for _, written := range d.Verify.Secret {
		value, err := definition.Resolve(written, doc.Folder(), getenv)
		if err != nil {
			return nil, []pawl.Field{doc.Fault("/verify/secret", "secret: %s", strings.ReplaceAll(err.Error(), "\n", "; "))}
		}
		out = append(out, value)
	}
	faults := d.tried(out)
	for i := range faults {
		faults[i].Place = doc.Place(faults[i].Pointer)
	}
	return out, faults
}

// tried tells what is wrong with secrets that were found.
func (d Definition) tried(secrets []string) []pawl.Field {
	if _, err := verify.New(d.Settings(), secrets); err != nil {
		return []pawl.Field{{Pointer: "/verify/secret", Message: err.Error()}}
	}
	return nil
}
