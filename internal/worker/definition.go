package worker

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/workerstore"
)

// Definition is how the jobs of a task are handed out.
type Definition struct {
	Lease       time.Duration `json:"lease"`       // how long a worker has a job before it must ask for more time
	MaxAttempts int           `json:"maxAttempts"` // of jobs that do not say
	PerLane     int           `json:"perLane"`     // how many jobs of a lane are in hand at once
	Keep        time.Duration `json:"keep"`        // of results
	Rate        *store.Rate   `json:"rate,omitempty"`
	Batch       *store.Batch  `json:"batch,omitempty"`
}

// Usual is what a definition says that says nothing.
func Usual() Definition {
	return Definition{Lease: 30 * time.Second, MaxAttempts: 10, PerLane: 1, Keep: 24 * time.Hour}
}

// The bounds of a definition.
const (
	MinLease    = time.Second
	MaxLease    = 24 * time.Hour
	MaxAttempts = 1000
	MaxPerLane  = 10_000
	MinKeep     = time.Second
	MaxKeep     = 365 * 24 * time.Hour
	MaxRate     = 1_000_000
	MinPeriod   = 100 * time.Millisecond
	MaxPeriod   = 24 * time.Hour
	MaxBatch    = MaxClaim
	MinHold     = time.Millisecond
	MaxHold     = time.Hour

	// maxTasks is how many tasks can be declared.
	maxTasks = 1000
)

// Check finds what is wrong with a definition, by the names of the API.
func (d Definition) Check() (faults []pawl.Field) {
	add := func(wrong bool, pointer, format string, args ...any) {
		if wrong {
			faults = append(faults, pawl.Field{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
		}
	}
	add(d.Lease < MinLease || d.Lease > MaxLease, "/lease", "must be 1s to 24h")
	add(d.MaxAttempts < 1 || d.MaxAttempts > MaxAttempts, "/maxAttempts", "must be 1 to %d", MaxAttempts)
	add(d.PerLane < 1 || d.PerLane > MaxPerLane, "/concurrencyPerLane", "must be 1 to %d", MaxPerLane)
	add(d.Keep < MinKeep || d.Keep > MaxKeep, "/keepResults", "must be 1s to 365d")
	if r := d.Rate; r != nil {
		add(r.Limit < 1 || r.Limit > MaxRate, "/rate/limit", "must be 1 to %d", MaxRate)
		add(r.Period < MinPeriod || r.Period > MaxPeriod, "/rate/period", "must be 100ms to 24h")
	}
	if b := d.Batch; b != nil {
		add(b.Size < 1 || b.Size > MaxBatch, "/batch/size", "must be 1 to %d", MaxBatch)
		add(b.Wait < MinHold || b.Wait > MaxHold, "/batch/wait", "must be 1ms to 1h")
	}
	return faults
}

// names are those that a task may have: they are part of addresses and of what
// nodes tell each other.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// own is what names of Pawl's own tasks begin with, those of later versions too.
const own = "pawl."

// NameFault says what is wrong with the name of a task, or is empty.
func NameFault(name string) string {
	switch {
	case !names.MatchString(name):
		return "must have 1 to 100 letters, digits, dots, underscores and hyphens, and begin with a letter or digit"
	case strings.HasPrefix(strings.ToLower(name), own):
		return "must not begin with pawl., as Pawl's own do"
	}
	return ""
}

// definitionOf reads the definition of a task.
func definitionOf(t workerstore.Task) (Definition, error) {
	d := Usual()
	if err := json.Unmarshal(t.Definition, &d); err != nil {
		return d, fmt.Errorf("read task %s: %w", t.Name, err)
	}
	return d, nil
}
