package subject

import (
	"strconv"
	"time"
)

// Job is one job to enqueue.
type Job struct {
	Seq   int       // its number, unique within a measurement
	RunAt time.Time // zero for now
	Lane  string    // empty for none
}

// HotLane is the lane that holds half of all jobs in a skewed batch.
const HotLane = "hot"

// LaneName names the i-th of the ordinary lanes.
func LaneName(i int) string { return "lane-" + strconv.Itoa(i) }

// Payload is the body of every job in every queue: about 50 bytes of JSON.
type Payload struct {
	Seq  int    `json:"seq"`
	Note string `json:"note"`
}

// NewPayload returns the payload of a job.
func NewPayload(seq int) Payload {
	return Payload{Seq: seq, Note: "a small and ordinary payload"}
}

// Batch describes jobs by rule, so that a million of them cross the pipe in
// one line.
type Batch struct {
	First int `json:"first"` // number of the first job
	Count int `json:"count"`
	// AtMS is when the first job is due, in Unix milliseconds; 0 means at once.
	AtMS int64 `json:"atMs"`
	// StepMS is the time between one due instant and the next.
	StepMS int64 `json:"stepMs"`
	Lanes  int   `json:"lanes"` // spread over so many lanes; 0 for none
	// Hot puts every job with an even number into HotLane. The others are in
	// the same lanes as without it, so that the two can be compared.
	Hot bool `json:"hot"`
	// PerLane is how many jobs of a lane may run at once; 0 is one.
	PerLane int `json:"perLane,omitempty"`
	// OneLane puts all of them into HotLane.
	OneLane bool `json:"oneLane,omitempty"`
	// Beside is how many numbers before First are jobs that go on meanwhile, each
	// for SlowMS. They are not counted.
	Beside int   `json:"beside,omitempty"`
	SlowMS int64 `json:"slowMs,omitempty"`
}

// Job returns the i-th job of the batch.
func (b Batch) Job(i int) Job {
	j := Job{Seq: b.First + i, Lane: b.lane(b.First + i)}
	if b.AtMS > 0 {
		j.RunAt = time.UnixMilli(b.AtMS + int64(i)*b.StepMS)
	}
	return j
}

// Jobs returns jobs from to to, without the last.
func (b Batch) Jobs(from, to int) []Job {
	jobs := make([]Job, 0, to-from)
	for i := from; i < to; i++ {
		jobs = append(jobs, b.Job(i))
	}
	return jobs
}

func (b Batch) lane(seq int) string {
	if i := b.laneIndex(seq); i >= 0 {
		if i == b.Lanes {
			return HotLane
		}
		return LaneName(i)
	}
	return ""
}

// laneIndex is -1 without lanes, and Lanes for the hot one.
func (b Batch) laneIndex(seq int) int {
	switch {
	case b.OneLane:
		return b.Lanes
	case b.Lanes == 0:
		return -1
	case b.Hot && seq%2 == 0:
		return b.Lanes
	}
	return seq % b.Lanes
}
