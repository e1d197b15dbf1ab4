// Package spec reads and checks the definitions of hooks: whom they believe, which
// deliveries they take, and what those become. It is pure.
package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/hook/verify"
)

// Kind is what a document says that defines a hook.
const Kind = "hook"

// Definition says what a hook takes and what becomes of it. Its JSON, once
// normalised, is its stored form, in which secrets are references.
type Definition struct {
	Name        string            `json:"name" definition:"required" pattern:"^[a-z0-9][a-z0-9._-]{0,62}$" is:"a name: it has up to 63 small letters, digits, -, _ and ., and begins with a letter or a digit" doc:"Unique among hooks; deliveries are posted to /hooks/NAME."`
	Description string            `json:"description,omitempty" definition:"max=4096" doc:"For people."`
	Verify      Verify            `json:"verify" definition:"required" doc:"Who is believed."`
	DeliveryID  string            `json:"deliveryId,omitempty" definition:"max=256" doc:"What tells one delivery from another: header:NAME or body:PATH. Each scheme has its own."`
	When        map[string]Values `json:"when,omitempty" definition:"max=20" doc:"Which deliveries have an effect: header:NAME or body:PATH, and the value or values it must have. Others are kept as filtered."`
	Publish     *Publish          `json:"publish,omitempty" doc:"A delivery becomes an event of a workflow."`
	Job         *Job              `json:"job,omitempty" doc:"A delivery becomes a job."`
	Run         *Run              `json:"run,omitempty" doc:"A delivery runs a schedule once, now."`
	MaxBytes    definition.Size   `json:"maxBytes" definition:"default=1MiB,min=1,max=16MiB" doc:"Of a body; larger ones are refused."`
}

// Verify says who is believed.
type Verify struct {
	Scheme    string `json:"scheme" definition:"required,oneof=standard|github|stripe|slack|hmac|token" doc:"How deliveries are signed."`
	Secret    Values `json:"secret,omitempty" doc:"What they are signed with: a reference such as ${GITHUB_SECRET}, or several while it is being changed. In files of served folders also file:PATH."`
	Header    string `json:"header,omitempty" definition:"max=128" doc:"For hmac and token: the header with the signature (X-Signature) or the secret (Authorization)."`
	Algorithm string `json:"algorithm,omitempty" definition:"oneof=sha256|sha512|sha1" doc:"For hmac."`
	Encoding  string `json:"encoding,omitempty" definition:"oneof=hex|base64" doc:"For hmac: of the signature; either if it is missing."`
	Prefix    string `json:"prefix,omitempty" definition:"max=64" doc:"For hmac: what precedes the signature, such as v1=."`
	Timestamp string `json:"timestamp,omitempty" definition:"max=128" doc:"For hmac: the header with the seconds since 1970 that are signed as well: the time, a dot and the body."`
	Tolerance string `json:"tolerance,omitempty" definition:"max=64,min=2" pattern:"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$" doc:"How far the time that was signed may be away; 5m if it is missing."`
}

// Publish makes deliveries events.
type Publish struct {
	Workflow string `json:"workflow" definition:"required,max=256" doc:"The workflow that gets the event."`
	Topic    string `json:"topic" definition:"required,max=256" doc:"Its topic."`
	Payload  string `json:"payload" definition:"default=body,max=512" doc:"body, a part of it such as body:issue.title, or delivery: an object with id, hook, receivedAt, headers and body."`
}

// Job makes deliveries jobs.
type Job struct {
	Task        string          `json:"task" definition:"required,max=256" doc:"What to do."`
	Payload     json.RawMessage `json:"payload,omitempty" doc:"As for publish, or an object that is the payload itself. The body if it is missing."`
	Lane        string          `json:"lane,omitempty" definition:"max=256" doc:"Jobs of a lane run one at a time, in order."`
	Priority    int             `json:"priority,omitempty" doc:"1 runs before 0, 0 before -1."`
	MaxAttempts int             `json:"maxAttempts,omitempty" definition:"min=0,max=1000" doc:"How often it is tried; 0 is what the task says."`
}

// Run makes deliveries runs of a schedule.
type Run struct {
	Schedule string `json:"schedule" definition:"required,max=256" doc:"The name of the schedule, of the same owner as the hook."`
}

const defaultTolerance = 5 * time.Minute

// Settings are how deliveries are verified.
func (d Definition) Settings() verify.Settings {
	s := verify.Settings{
		Scheme: d.Verify.Scheme, Tolerance: defaultTolerance,
		Header: http.CanonicalHeaderKey(d.Verify.Header), Algorithm: cmp.Or(d.Verify.Algorithm, "sha256"), Encoding: d.Verify.Encoding, Prefix: d.Verify.Prefix, Timestamp: d.Verify.Timestamp,
	}
	switch {
	case s.Header != "":
	case s.Scheme == verify.HMAC:
		s.Header = "X-Signature"
	case s.Scheme == verify.Token:
		s.Header = "Authorization"
	}
	if length, err := parseTolerance(d.Verify.Tolerance); err == nil && length > 0 {
		s.Tolerance = length
	}
	return s
}

// ID is what tells deliveries apart, and whether it was named. If there is none,
// equal bodies are one delivery.
func (d Definition) ID() (at Selector, named bool) {
	text := d.DeliveryID
	if text == "" {
		switch d.Verify.Scheme {
		case verify.Standard:
			text = "header:webhook-id"
		case verify.GitHub:
			text = "header:X-GitHub-Delivery"
		case verify.Stripe:
			text = "body:id"
		case verify.Slack:
			text = "body:event_id"
		}
	}
	at, _ = ParseSelector(text)
	// A signature of Slack is also on commands and buttons, which have no id.
	return at, d.DeliveryID != "" || text != "" && d.Verify.Scheme != verify.Slack
}

// JSON is the stored form. Secrets that are no references are left out: they are
// with the file.
func (d Definition) JSON() json.RawMessage {
	if !d.Stored() {
		d.Verify.Secret = nil
	}
	raw, _ := json.Marshal(d) // of types that can be JSON
	return raw
}

// Stored reports whether the secrets are references, which are kept. Others are
// never written down.
func (d Definition) Stored() bool {
	for _, secret := range d.Verify.Secret {
		if _, ok := definition.Reference(secret); !ok {
			return false
		}
	}
	return len(d.Verify.Secret) > 0
}

// Version is a hash of the stored form.
func (d Definition) Version() string {
	sum := sha256.Sum256(d.JSON())
	return hex.EncodeToString(sum[:])
}

// Effect says in words what a delivery becomes.
func (d Definition) Effect() string {
	switch {
	case d.Publish != nil:
		return fmt.Sprintf("publishes %s to the workflow %s", d.Publish.Topic, d.Publish.Workflow)
	case d.Job != nil:
		return "enqueues a job of the task " + d.Job.Task
	case d.Run != nil:
		return "runs the schedule " + d.Run.Schedule
	}
	return ""
}
