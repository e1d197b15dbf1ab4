package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/pawlrun/pawl/client"
)

// storedPlan is how a plan is kept: what the slots of one revision have in common
// stands there once, because an input may be large and the slots may be many.
type storedPlan struct {
	GrantID   string           `json:"grantId,omitempty"`
	Versions  []plannedVersion `json:"versions,omitempty"`
	Slots     []storedSlot     `json:"slots"`
	Skipped   int              `json:"skipped"`
	Before    int              `json:"before,omitempty"`
	Uncovered []Uncovered      `json:"uncovered,omitempty"`
}

// plannedVersion is what the schedule was at a revision.
type plannedVersion struct {
	Revision int64           `json:"revision"`
	GraphID  string          `json:"graphId"`
	Input    json.RawMessage `json:"input"`
}

type storedSlot struct {
	At       client.Instant `json:"at"`
	Revision int64          `json:"revision"`
	Was      string         `json:"was,omitempty"`

	// Plans once had these in every slot, and no versions. Such plans are read,
	// and no longer written.
	GraphID string          `json:"graphId,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
}

// encode writes a plan as it is kept. The same plan always gives the same text.
func (p Plan) encode() (json.RawMessage, error) {
	out := storedPlan{GrantID: p.GrantID, Slots: make([]storedSlot, len(p.Slots)), Skipped: p.Skipped, Before: p.Before, Uncovered: p.Uncovered}
	known := map[int64]bool{}
	for i, slot := range p.Slots {
		if !known[slot.Revision] {
			known[slot.Revision] = true
			out.Versions = append(out.Versions, plannedVersion{slot.Revision, slot.GraphID, slot.Input})
		}
		out.Slots[i] = storedSlot{At: slot.At, Revision: slot.Revision, Was: slot.Was}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write plan: %w", err)
	}
	return raw, nil
}

// decodePlan reads a plan as it is kept.
func decodePlan(raw json.RawMessage) (Plan, error) {
	var in storedPlan
	if err := json.Unmarshal(raw, &in); err != nil {
		return Plan{}, fmt.Errorf("read plan: %w", err)
	}
	versions := make(map[int64]plannedVersion, len(in.Versions))
	for _, v := range in.Versions {
		versions[v.Revision] = v
	}
	p := Plan{GrantID: in.GrantID, Slots: make([]PlannedSlot, len(in.Slots)), Skipped: in.Skipped, Before: in.Before, Uncovered: in.Uncovered}
	for i, slot := range in.Slots {
		v, there := versions[slot.Revision]
		if !there {
			v = plannedVersion{slot.Revision, slot.GraphID, slot.Input}
		}
		p.Slots[i] = PlannedSlot{At: slot.At, Revision: slot.Revision, GraphID: v.GraphID, Input: v.Input, Was: slot.Was}
	}
	return p, nil
}

// hashPlan names a plan as it is kept, with the schedule and the pace.
func hashPlan(scheduleID string, pace int, plan json.RawMessage) (string, error) {
	raw, err := json.Marshal(struct {
		Schedule string
		Pace     int
		Plan     json.RawMessage
	}{scheduleID, pace, plan})
	if err != nil {
		return "", fmt.Errorf("hash plan: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
