package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/script"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/eventstore"
)

// maxPartitionName bounds the name of a partition, in bytes.
const maxPartitionName = 512

// partitionID names a partition of a consumer; that of events without one has no
// name.
func partitionID(handler, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", handler, name))
	return hex.EncodeToString(sum[:12])
}

// partitionOf is the partition of an event: its name, or why it has none. The error is
// one of the host, for which the event cannot be blamed.
func (s *Service) partitionOf(ctx context.Context, c Consumer, program *script.Program, scope string, e eventstore.Event) (name, fault string, err error) {
	if c.PartitionBy {
		name, fault, err = s.partitionBy(ctx, c, program, scope, e)
	} else {
		name, fault = followPath(c.Partition, e)
	}
	if err == nil && fault == "" {
		fault = partitionFault(name)
	}
	if fault != "" {
		name, fault = "", fmt.Sprintf("event %s of topic %s has no partition: %s", quoted(e.MessageID), quoted(e.Topic), fault)
	}
	return name, fault, err
}

// partitionFault says why a text cannot be the name of a partition, or nothing.
func partitionFault(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > maxPartitionName:
		return fmt.Sprintf("it has %d bytes; at most %d are allowed", len(name), maxPartitionName)
	case !store.Storable(name):
		return "it has a character that cannot be stored"
	}
	return ""
}

// followPath finds the text or number that a path leads to.
func followPath(path string, e eventstore.Event) (text, fault string) {
	steps := strings.Split(path, ".")
	switch steps[0] {
	case "messageId":
		return e.MessageID, ""
	case "topic":
		return e.Topic, ""
	}
	at := value{raw: e.Payload}
	for i, step := range steps[1:] {
		here := strings.Join(steps[:i+1], ".")
		if list, ok := at.list(); ok {
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(list) {
				return "", fmt.Sprintf("%s is a list of %d and has no %s", here, len(list), quoted(step))
			}
			at = list[n]
			continue
		}
		o, ok := at.object()
		switch {
		case !ok:
			return "", fmt.Sprintf("%s is %s and has no %s", here, at.kind(), quoted(step))
		case !o.has(step):
			return "", fmt.Sprintf("%s has no %s", here, quoted(step))
		}
		at = o.get(step)
	}
	if at.kind() == "a number" {
		return strings.TrimSpace(string(at.raw)), ""
	}
	text, ok := at.text()
	if !ok {
		return "", fmt.Sprintf("%s must be a string or a number, not %s", path, at.kind())
	}
	return text, ""
}

// partitionBy asks the function of the script.
func (s *Service) partitionBy(ctx context.Context, c Consumer, program *script.Program, scope string, e eventstore.Event) (name, fault string, err error) {
	arg, err := json.Marshal(asScriptSees(e))
	if err != nil {
		return "", "", err
	}
	ask := func() (script.Result, error) {
		return s.cfg.Scripts.Run(ctx, script.Request{
			Program: program, Handler: "consumers." + c.Name + ".partition", Args: []json.RawMessage{arg},
			Now: e.CreatedAt, Seed: seedOf(e.MessageID, "partition"), Scope: scope,
		}, noHost{}, s.cfg.Limits)
	}
	result, err := ask()
	if errors.Is(err, script.ErrWorkerCrashed) { // somebody killed it; a script that does so itself does it again
		result, err = ask()
	}
	switch {
	case ctx.Err() != nil:
		return "", "", context.Cause(ctx)
	case err != nil && isOfScript(err):
		return "", "partition failed: " + s.cfg.Tools.RedactText(cutText(err.Error(), 500)), nil
	case err != nil:
		return "", "", err
	case !result.HasValue:
		return "", "partition returned nothing; it must return a string", nil
	}
	returned := value{raw: result.Value}
	name, ok := returned.text()
	if !ok {
		return "", fmt.Sprintf("partition must return a string, not %s", returned.kind()), nil
	}
	return name, "", nil
}

// isOfScript reports whether a script itself is to blame for an error.
func isOfScript(err error) bool {
	if errors.Is(err, pawl.ErrUnavailable) {
		return false
	}
	_, thrown := errors.AsType[*script.Thrown](err)
	_, limit := errors.AsType[*script.LimitError](err)
	_, aborted := errors.AsType[*script.Aborted](err)
	return thrown || limit || aborted || errors.Is(err, script.ErrNeverSettles) || errors.Is(err, script.ErrWorkerCrashed) || errors.Is(err, script.ErrOutput)
}

// noHost is for a function that may call nothing.
type noHost struct{}

func (noHost) Call(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, script.Abort(errors.New("partition is a function of the event and calls nothing"))
}
