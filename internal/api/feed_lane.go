package api

import (
	"bytes"
	"encoding/json"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/lane"
)

// laneEvent is the data of an event of a kind of lanes: what happened, the lane
// under the name of its kind, and what the kind tells beside.
type laneEvent lane.Change

// MarshalJSON implements json.Marshaler.
func (e laneEvent) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	add := func(name string, value any) error {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		out.WriteString(`,"` + name + `":`)
		out.Write(text)
		return nil
	}
	if err := add("what", e.What); err != nil {
		return nil, err
	}
	if err := add(string(e.Kind), e.Key); err != nil {
		return nil, err
	}
	if e.Owned && e.Name != "" {
		if err := add("name", e.Name); err != nil {
			return nil, err
		}
	}
	if err := add("at", client.At(e.At)); err != nil {
		return nil, err
	}
	if e.Detail != nil {
		detail, err := json.Marshal(e.Detail)
		if err != nil {
			return nil, err
		}
		if fields := detail[1 : len(detail)-1]; len(fields) > 0 {
			out.WriteByte(',')
			out.Write(fields)
		}
	}
	text := append(out.Bytes(), '}')
	text[0] = '{'
	return text, nil
}

// ObserveLane tells of what happens to lanes beside their runs.
func (f *Feed) ObserveLane(c lane.Change) {
	if !f.wanted() {
		return
	}
	f.publish(string(c.Kind), c.Key, ofLane(c.Ref), laneEvent(c))
}
