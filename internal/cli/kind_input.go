package cli

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
)

// inputPrefix begins the id of every input.
const inputPrefix = "in_"

func inputKind() kind {
	return kind{
		plural: "inputs", singular: "input", path: client.InputsPath, below: "inputs", parent: workflowKind, alone: isInputID, filters: []string{"status"},
		columns: []column{
			{title: "id"}, {title: "status", state: true}, {title: "found"}, {title: "title", flex: true, least: 12}, {title: "outputs", spare: true}, {title: "source", flex: true, spare: true},
			{title: "type", wide: true, flex: true}, {title: "external id", wide: true, flex: true}, {title: "created", wide: true},
		},
		row: inputRow, describe: describeInput,
	}
}

func isInputID(name string) bool { return strings.HasPrefix(name, inputPrefix) }

func inputRow(raw json.RawMessage, now time.Time) ([]string, error) {
	var in client.InputDetail
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	return []string{
		in.ID, in.Status, relative(in.CreatedAt.Time, now), in.Title, strconv.Itoa(len(in.Outputs)), in.Source,
		in.Type, in.ExternalID, pawl.FormatTime(in.CreatedAt.Time),
	}, nil
}

func outputKind() kind {
	return kind{
		plural: "outputs", singular: "output", below: "outputs", parent: workflowKind,
		columns: []column{
			{title: "when"}, {title: "state", state: true}, {title: "call", flex: true, least: 12}, {title: "title", flex: true, least: 12}, {title: "inputs", spare: true}, {title: "run", spare: true},
			{title: "arguments", wide: true, flex: true}, {title: "result", wide: true, flex: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var c client.Output
			if err := json.Unmarshal(raw, &c); err != nil {
				return nil, err
			}
			return []string{
				relative(c.At.Time, now), c.State, c.Tool + "." + c.Method, orDash(string(c.Title)), strconv.Itoa(len(c.Inputs)), orDash(c.RunID),
				string(compactJSON(c.Arguments)), string(compactJSON(c.Result)),
			}, nil
		},
	}
}

func callName(c client.RunMutation) string { return c.Tool + "." + c.Method }

func eventKind() kind {
	return kind{
		plural: "events", singular: "event", aliases: []string{"e"}, below: "events", parent: workflowKind, filters: []string{"topic", "status", "input"},
		columns: []column{
			{title: "topic", flex: true, least: 12}, {title: "message", flex: true, least: 12}, {title: "status", state: true}, {title: "when"}, {title: "releases", spare: true}, {title: "payload", flex: true, spare: true},
			{title: "published by", wide: true}, {title: "held by", wide: true}, {title: "caused by", wide: true, flex: true},
		},
		row: func(raw json.RawMessage, now time.Time) ([]string, error) {
			var e client.Event
			if err := json.Unmarshal(raw, &e); err != nil {
				return nil, err
			}
			return []string{
				e.Topic, e.MessageID, e.Status, relative(e.CreatedAt.Time, now), strconv.Itoa(e.Attempt), string(compactJSON(e.Payload)),
				orDash(e.CreatedBy), orDash(string(e.ReservedBy)), orDash(strings.Join(e.CausedBy, ",")),
			}, nil
		},
	}
}
