package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/budget"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store/eventstore"
	"github.com/pawlrun/pawl/internal/tool"
)

// rules say what a phase may do (context 3.3).
type rules struct {
	phase    string // as people call it
	read     bool   // tools that change nothing
	mutate   bool   // one call that changes something
	peek     bool
	publish  bool
	register bool // inputs; a publish must then name one
}

// The phases and what they may do.
var (
	producerRules = rules{phase: "a producer's handler", read: true, publish: true, register: true} //nolint:gochecknoglobals // a table
	prepareRules  = rules{phase: "prepare", read: true, peek: true}                                 //nolint:gochecknoglobals // a table
	mutateRules   = rules{phase: "mutate", mutate: true}                                            //nolint:gochecknoglobals // a table
	nextRules     = rules{phase: "next", publish: true}                                             //nolint:gochecknoglobals // a table
)

// world is what a phase can reach, once the rules allow it.
type world interface {
	peek(ctx context.Context, topic string, limit int) ([]eventstore.Event, error)
	byMessage(ctx context.Context, topic string, ids []string) ([]eventstore.Event, error)
	knownInput(ctx context.Context, id string) (bool, error)
	lookup(connection, method string) (tool.Target, error)
	read(ctx context.Context, t tool.Target, args json.RawMessage) (json.RawMessage, error)
	// noted is told of every read, for replays.
	noted(op string, call, answer json.RawMessage, err error)
	// approved reports whether a call may be made that must be asked for.
	approved(ctx context.Context, t tool.Target, args json.RawMessage) (bool, error)
	// mutate makes the one call of the run and returns what became of it.
	mutate(ctx context.Context, t tool.Target, args json.RawMessage) *calledMutation
}

// failure is why a phase failed, with the class that was decided where it
// arose.
type failure struct {
	class      pawl.Class
	code       string
	text       string
	retryAfter time.Duration
	deferred   bool // our own limit said no: it counts as no attempt
}

func (f *failure) Error() string { return f.text }

// host answers the calls of one phase. It holds the phase to its rules, keeps
// what it publishes aside until the run commits, and remembers the first thing
// that went wrong: a script cannot swallow that.
type host struct {
	rules
	world      world
	now        time.Time
	scope      string // the workflow
	createdBy  string // the run
	publishes  []string
	subscribes []string

	mu       sync.Mutex
	first    *failure              // guarded by mu until the phase has ended, as are the others
	events   []eventstore.NewEvent // in the order of the script
	inputs   []eventstore.Input
	known    map[string]bool // inputs that were registered or found
	bytes    int             // of payloads
	call     *calledMutation // the call that mutate made
	asked    *askedCall      // the call that a person must approve first
	underWay chan struct{}   // closed when the call that mutate made has ended; nil before it
	second   *failure        // another call that mutate made beside it
	calls    int             // that are with the host, or were when the phase was over
	turns    turns
}

// askedCall is a call that waits for a person.
type askedCall struct {
	target tool.Target
	args   json.RawMessage
}

// Limits of what one phase publishes.
const (
	maxEvents     = 10_000
	maxEventBytes = 32 << 20
	maxMessageID  = 512
	maxInputText  = 512
	maxPeek       = 1000
	defaultPeek   = 100
	// maxPeekBytes bounds the events of one answer, and heldByPeek what they
	// take in this process: as rows, as JSON, and on their way.
	maxPeekBytes = 7 << 20
	heldByPeek   = 4 * maxPeekBytes
	// maxArguments bounds those of a call that changes something: they are
	// kept, shown to people, and needed to ask what became of it.
	maxArguments = 4 << 20
)

var (
	errCalled = errors.New("the call was made; nothing else in mutate has an effect")
	errAsked  = errors.New("a person is asked first")

	errFailedAlready = errors.New("the phase has failed already")
)

// Call answers one call of the script.
func (h *host) Call(ctx context.Context, op string, args json.RawMessage) (json.RawMessage, error) {
	h.enter()
	defer h.leave(ctx)
	defer h.turns.done(ctx)
	if h.rules.mutate {
		h.turns.wait(ctx)
	}
	if h.failed() {
		h.noteSecond(op, args)
		return nil, h.abort(ctx, errFailedAlready)
	}
	var out json.RawMessage
	var err error
	switch op {
	case "peek":
		out, err = h.onPeek(ctx, args)
	case "getByIds":
		out, err = h.onGetByIDs(ctx, args)
	case "tool":
		out, err = h.onTool(ctx, args)
	case "publish":
		err = h.onPublish(ctx, args)
	case "registerInput":
		err = h.onRegister(args)
	default:
		err = violation("unknown_call", "ctx has no %q", op)
	}
	if op == "peek" || op == "getByIds" || op == "tool" && h.rules.read {
		h.world.noted(op, args, out, err)
	}
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil && op != "publish" { // the phase is over, and not because of this
		return nil, err
	}
	if !errors.Is(err, errCalled) && !errors.Is(err, errAsked) {
		h.note(failureFrom(err))
	}
	return nil, h.abort(ctx, err)
}

func (h *host) failed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.first != nil || h.call != nil || h.asked != nil
}

// note keeps the first failure of the phase.
func (h *host) note(f *failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.first == nil {
		h.first = f
	}
}

// violation is something that a script must not do: a fault of the script.
func violation(code, format string, args ...any) *failure {
	return &failure{class: pawl.ClassLogic, code: code, text: fmt.Sprintf(format, args...)}
}

// failureFrom gives an error of the host its class. What has none is a fault
// of the host, so that it is never taken for one of the script.
func failureFrom(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if e, ok := errors.AsType[*tool.Error](err); ok {
		text := e.Msg
		if e.Hint != "" {
			text += " (" + e.Hint + ")"
		}
		return &failure{class: e.Class, code: e.Code, text: text, retryAfter: e.RetryAfter, deferred: e.Deferred}
	}
	if errors.Is(err, pawl.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &failure{class: pawl.ClassTransient, code: "unavailable", text: err.Error()}
	}
	return &failure{class: pawl.ClassInternal, code: "internal", text: err.Error()}
}

// failureOf says why a phase failed, or nil: what the host noted comes first,
// whatever the script made of it; else what the script did.
func (h *host) failureOf(err error) *failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.first != nil {
		f := *h.first
		if a, ok := errors.AsType[*script.Aborted](err); ok && a.Place().Line > 0 {
			f.text = a.Place().String() + ": " + f.text
		}
		return &f
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pawl.ErrUnavailable): // the script did not even run
		return failureFrom(err)
	}
	f := &failure{class: script.Class(err), code: codeOf(err), text: err.Error()}
	if l, ok := errors.AsType[*script.LimitError](err); ok && l.Limit == script.LimitWall && h.calls == 0 {
		f.class = pawl.ClassLogic // nothing outside took so long: it is the script itself
	}
	return f
}

func codeOf(err error) string {
	if t, ok := errors.AsType[*script.Thrown](err); ok && t.Name != "" {
		return t.Name
	}
	if l, ok := errors.AsType[*script.LimitError](err); ok {
		return "limit_" + string(l.Limit)
	}
	switch {
	case errors.Is(err, script.ErrNeverSettles):
		return "never_settles"
	case errors.Is(err, script.ErrWorkerCrashed):
		return codeWorkerCrashed
	}
	return "thrown"
}

func (h *host) onPeek(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var in struct {
		Topic string          `json:"topic"`
		Limit json.RawMessage `json:"limit"`
	}
	if err := h.topicArgs("peek", args, &in, &in.Topic); err != nil {
		return nil, err
	}
	limit := defaultPeek
	if len(in.Limit) > 0 && string(in.Limit) != "null" {
		if err := json.Unmarshal(in.Limit, &limit); err != nil || limit < 1 {
			return nil, violation("peek", "peek: limit must be a whole number from 1 to %d, not %s", maxPeek, in.Limit)
		}
	}
	if err := budget.Reserve(ctx, heldByPeek); err != nil {
		return nil, err
	}
	events, err := h.world.peek(ctx, in.Topic, min(limit, maxPeek))
	if errors.Is(err, eventstore.ErrEventsTooLarge) {
		return nil, violation("too_large", "peek: the events have more than the %d MiB that one call answers: ask for fewer, such as ctx.peek(%q, { limit: 10 })", maxPeekBytes>>20, in.Topic)
	}
	return eventsJSON(events), err
}

func (h *host) onGetByIDs(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var in struct {
		Topic string   `json:"topic"`
		IDs   []string `json:"ids"`
	}
	if err := h.topicArgs("getByIds", args, &in, &in.Topic); err != nil {
		return nil, err
	}
	if len(in.IDs) > maxPeek {
		return nil, violation("getByIds", "getByIds: at most %d ids, not %d", maxPeek, len(in.IDs))
	}
	if err := budget.Reserve(ctx, heldByPeek); err != nil {
		return nil, err
	}
	events, err := h.world.byMessage(ctx, in.Topic, in.IDs)
	if errors.Is(err, eventstore.ErrEventsTooLarge) {
		return nil, violation("too_large", "getByIds: the events have more than the %d MiB that one call answers: ask for fewer ids", maxPeekBytes>>20)
	}
	return eventsJSON(events), err
}

// topicArgs reads the arguments of a call about a topic that the consumer must
// subscribe to.
func (h *host) topicArgs(op string, args json.RawMessage, into any, topic *string) error {
	if !h.rules.peek {
		return violation("phase", "ctx.%s cannot be used in %s: only prepare looks at events", op, h.phase)
	}
	if err := json.Unmarshal(args, into); err != nil {
		return violation(op, "%s: the arguments are not right: %s", op, plainJSON(err))
	}
	if !slices.Contains(h.subscribes, *topic) {
		return violation("topic", "%s: the consumer does not subscribe to %q; it subscribes to %s", op, *topic, quotedList(h.subscribes))
	}
	return nil
}

// plainJSON says what is wrong with JSON without naming Go's types.
func plainJSON(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s is a %s", t.Field, t.Value)
	}
	return err.Error()
}

// scriptEvent is an event as scripts see it.
type scriptEvent struct {
	Topic     string          `json:"topic"`
	MessageID string          `json:"messageId"`
	Payload   json.RawMessage `json:"payload"`
	Status    string          `json:"status"`
	Attempt   int             `json:"attempt"`
	CreatedAt string          `json:"createdAt"`
}

func asScriptSees(e eventstore.Event) scriptEvent {
	return scriptEvent{e.Topic, e.MessageID, e.Payload, string(e.Status), e.Attempt, pawl.FormatTime(e.CreatedAt)}
}

func eventsJSON(events []eventstore.Event) json.RawMessage {
	out := make([]scriptEvent, len(events))
	for i, e := range events {
		out[i] = asScriptSees(e)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return json.RawMessage("[]") // payloads are JSON, or they were not stored
	}
	return raw
}

func (h *host) onTool(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
	var in struct {
		Connection string          `json:"connection"`
		Method     string          `json:"method"`
		Args       json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, violation("tool", "tools: %s", plainJSON(err))
	}
	name := in.Connection + "." + in.Method
	if !h.rules.read && !h.rules.mutate {
		return nil, violation("phase", "tools.%s cannot be used in %s: next records what happened and calls nothing", name, h.phase)
	}
	target, err := h.world.lookup(in.Connection, in.Method)
	if err != nil {
		return nil, err
	}
	switch {
	case target.Method.Mutation && !h.rules.mutate:
		return nil, violation("phase", "tools.%s has side effects and cannot be used in %s: call it in mutate", name, h.phase)
	case !target.Method.Mutation && !h.rules.read:
		return nil, violation("phase", "tools.%s only reads and cannot be used in %s: read in prepare and pass on what was read in data", name, h.phase)
	case target.Policy == tool.Deny:
		return nil, &failure{class: pawl.ClassPermission, code: "denied", text: fmt.Sprintf("the policy of connection %q denies %s", in.Connection, in.Method)}
	case target.Method.Mutation && len(in.Args) > maxArguments:
		return nil, violation("too_large", "tools.%s: the arguments have %d bytes; a call that changes something takes at most %d MiB: send it in parts", name, len(in.Args), maxArguments>>20)
	case target.Method.Mutation:
		return nil, h.onMutation(ctx, target, in.Args)
	}
	return h.world.read(ctx, target, in.Args)
}

// onMutation lets exactly one call pass and ends the phase with it; or with the
// question whether it may.
func (h *host) onMutation(ctx context.Context, t tool.Target, args json.RawMessage) error {
	h.mu.Lock()
	if h.first != nil || h.call != nil || h.asked != nil { // somebody was faster; see failed
		h.noteSecondLocked(t.Name, t.Method.Name)
		h.mu.Unlock()
		return errCalled
	}
	h.asked, h.underWay = &askedCall{t, args}, make(chan struct{})
	h.mu.Unlock()
	defer close(h.underWay)
	h.turns.done(ctx)
	if t.Policy == tool.Ask {
		ok, err := h.world.approved(ctx, t, args)
		if err != nil {
			return err
		}
		if !ok {
			return errAsked
		}
	}
	h.mu.Lock()
	h.asked, h.call = nil, &calledMutation{}
	h.mu.Unlock()
	called := h.world.mutate(ctx, t, args)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.call = called
	return errCalled
}

func (h *host) onPublish(ctx context.Context, args json.RawMessage) error {
	if !h.rules.publish {
		return violation("phase", "ctx.publish cannot be used in %s: producers and next publish", h.phase)
	}
	var in struct {
		Topics []string `json:"topics"`
		Event  struct {
			MessageID json.RawMessage `json:"messageId"`
			InputID   string          `json:"inputId"`
			Payload   json.RawMessage `json:"payload"`
		} `json:"event"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return violation("publish", "publish: the arguments are not right: %s", plainJSON(err))
	}
	id, err := messageID(in.Event.MessageID)
	if err != nil {
		return err
	}
	if len(in.Topics) == 0 {
		return violation("publish", "publish: no topic is named")
	}
	for _, topic := range in.Topics {
		if !slices.Contains(h.publishes, topic) {
			return violation("topic", "publish: the handler does not declare %q; it publishes to %s", topic, quotedList(h.publishes))
		}
	}
	payload := in.Event.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("null")
	}
	causes, err := h.causes(ctx, in.Event.InputID)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += len(in.Topics) * len(payload)
	if len(h.events)+len(in.Topics) > maxEvents || h.bytes > maxEventBytes {
		return violation("publish", "publish: a run publishes at most %d events and %d MiB", maxEvents, maxEventBytes>>20)
	}
	for _, topic := range in.Topics {
		h.events = append(h.events, eventstore.NewEvent{Topic: topic, MessageID: id, Payload: payload, CausedBy: causes})
	}
	return nil
}

func messageID(raw json.RawMessage) (string, error) {
	var id string
	if err := json.Unmarshal(raw, &id); err != nil {
		return "", violation("publish", "publish: messageId must be a string")
	}
	if id == "" || len(id) > maxMessageID || slices.Contains([]byte(id), 0) {
		return "", violation("publish", "publish: messageId must have 1 to %d bytes", maxMessageID)
	}
	return id, nil
}
