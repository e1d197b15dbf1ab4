package subject

// Op names a request.
type Op string

// The requests, in the order of a measurement.
const (
	OpSetup   Op = "setup"   // Config
	OpExpect  Op = "expect"  // Batch: the jobs that the next tally is about
	OpBulk    Op = "bulk"    // Batch, enqueued ChunkSize at a time by one caller
	OpEach    Op = "each"    // Batch, one by one, by Callers at a time
	OpPaced   Op = "paced"   // Batch, one every EveryUS, whether or not the last has returned
	OpStart   Op = "start"   // begin to work
	OpWait    Op = "wait"    // until all expected jobs are handled and finished, or TimeoutMS passed
	OpSamples Op = "samples" // the instants of all expected jobs
	OpStop    Op = "stop"    // end the work
	OpClose   Op = "close"   // clean up and exit
)

// ChunkSize is how many jobs one call of EnqueueBulk gets.
const ChunkSize = 1000

// Request is one line to a queue's process.
type Request struct {
	Op        Op     `json:"op"`
	Config    Config `json:"config,omitzero"`
	Batch     Batch  `json:"batch,omitzero"`
	Callers   int    `json:"callers,omitempty"`
	EveryUS   int64  `json:"everyUs,omitempty"`
	TimeoutMS int64  `json:"timeoutMs,omitempty"`
}

// Response is the one line that answers it.
type Response struct {
	Error   string   `json:"error,omitempty"`
	Seconds float64  `json:"seconds,omitempty"` // how long bulk or each took
	Tally   *Tally   `json:"tally,omitempty"`   // answers wait and stop
	Samples *Samples `json:"samples,omitempty"`
}

// Tally says what became of the expected jobs. Instants are Unix microseconds.
type Tally struct {
	Handled    int   `json:"handled"`    // distinct jobs
	Duplicates int   `json:"duplicates"` // further handlings of a job
	Strays     int   `json:"strays"`     // handlings of jobs that were not expected, such as future ones
	Overlaps   int   `json:"overlaps"`   // starts while another job of the lane ran
	Disorder   int   `json:"disorder"`   // starts after a later job of the lane
	FirstUS    int64 `json:"firstUs"`    // start of the first handler
	HandledUS  int64 `json:"handledUs"`  // end of the last handler
	FinishedUS int64 `json:"finishedUs"` // the store has no due job left
}

// Samples holds one instant for each expected job, in order, in Unix
// microseconds; 0 where the thing did not happen.
type Samples struct {
	Called    []int64 `json:"called,omitempty"`    // before the enqueue, for paced
	Committed []int64 `json:"committed,omitempty"` // the enqueue returned, for paced
	Started   []int64 `json:"started"`
}
