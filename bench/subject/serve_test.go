package subject

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// talk is Serve on the other end of two pipes.
type talk struct {
	t   *testing.T
	in  *io.PipeWriter
	out *json.Decoder
	end chan error
}

func newTalk(t *testing.T, s Subject) *talk {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &talk{t: t, in: inW, out: json.NewDecoder(outR), end: make(chan error, 1)}
	go func() {
		c.end <- Serve(t.Context(), s, inR, outW)
		outW.Close()
	}()
	return c
}

func (c *talk) do(req Request) Response {
	c.t.Helper()
	if err := json.NewEncoder(c.in).Encode(req); err != nil {
		c.t.Fatal(err)
	}
	var resp Response
	if err := c.out.Decode(&resp); err != nil {
		c.t.Fatal(err)
	}
	return resp
}

func (c *talk) must(reqs ...Request) Response {
	c.t.Helper()
	var last Response
	for _, req := range reqs {
		last = c.do(req)
		if last.Error != "" {
			c.t.Fatalf("%s: %s", req.Op, last.Error)
		}
	}
	return last
}

func TestDrainCountsEveryJobOnce(t *testing.T) {
	c := newTalk(t, &memory{})
	b := Batch{First: 10, Count: 2500, Lanes: 7, Hot: true}
	got := c.must(Request{Op: OpSetup}, Request{Op: OpExpect, Batch: b}, Request{Op: OpBulk, Batch: b},
		Request{Op: OpStart}, Request{Op: OpWait, TimeoutMS: 5000}).Tally
	if got.Handled != 2500 || got.Duplicates+got.Strays+got.Overlaps+got.Disorder != 0 {
		t.Errorf("tally = %+v", *got)
	}
	if got.FirstUS == 0 || got.HandledUS < got.FirstUS || got.FinishedUS < got.HandledUS {
		t.Errorf("instants out of order: %+v", *got)
	}
}

func TestTallyReportsJobsHandledTwice(t *testing.T) {
	c := newTalk(t, &memory{twice: true})
	b := Batch{Count: 30}
	got := c.must(Request{Op: OpExpect, Batch: b}, Request{Op: OpStart}, Request{Op: OpEach, Batch: b, Callers: 3},
		Request{Op: OpWait, TimeoutMS: 5000}, Request{Op: OpStop}).Tally
	if got.Handled != 30 || got.Duplicates != 30 {
		t.Errorf("tally = %+v", *got)
	}
}

func TestWaitTellsHowFarItCame(t *testing.T) {
	c := newTalk(t, &memory{lose: true})
	b := Batch{Count: 30}
	c.must(Request{Op: OpExpect, Batch: b}, Request{Op: OpBulk, Batch: b}, Request{Op: OpStart})
	got := c.do(Request{Op: OpWait, TimeoutMS: 20})
	if !strings.Contains(got.Error, "29 of 30 jobs handled") || got.Tally.Handled != 29 {
		t.Errorf("error %q, tally %+v", got.Error, got.Tally)
	}
}

func TestJobsOfAnotherBatchAreStrays(t *testing.T) {
	c := newTalk(t, &memory{})
	got := c.must(Request{Op: OpExpect, Batch: Batch{First: 100, Count: 5}}, Request{Op: OpStart},
		Request{Op: OpBulk, Batch: Batch{First: 99, Count: 7}}, Request{Op: OpStop}).Tally
	if got.Handled != 5 || got.Strays != 2 {
		t.Errorf("tally = %+v", *got)
	}
}

func TestPacedRecordsCallCommitAndStart(t *testing.T) {
	c := newTalk(t, &memory{})
	b := Batch{Count: 20}
	got := c.must(Request{Op: OpExpect, Batch: b}, Request{Op: OpStart}, Request{Op: OpPaced, Batch: b, EveryUS: 100},
		Request{Op: OpWait, TimeoutMS: 5000}, Request{Op: OpSamples}).Samples
	for i := range b.Count {
		if got.Called[i] == 0 || got.Committed[i] < got.Called[i] || got.Started[i] < got.Called[i] {
			t.Errorf("job %d: called %d, committed %d, started %d", i, got.Called[i], got.Committed[i], got.Started[i])
		}
	}
}

func TestEnqueueErrorsAreReported(t *testing.T) {
	c := newTalk(t, &memory{failOne: errRefused})
	got := c.do(Request{Op: OpEach, Batch: Batch{Count: 9}, Callers: 2})
	if got.Error != "each: refused" {
		t.Errorf("error = %q", got.Error)
	}
}

func TestEndOfInputEndsTheProcess(t *testing.T) {
	c := newTalk(t, &memory{lose: true})
	b := Batch{Count: 3}
	c.must(Request{Op: OpExpect, Batch: b}, Request{Op: OpBulk, Batch: b}, Request{Op: OpStart})
	if err := json.NewEncoder(c.in).Encode(Request{Op: OpWait, TimeoutMS: 600_000}); err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	var resp Response
	if err := c.out.Decode(&resp); err != nil || resp.Error == "" {
		t.Errorf("response %+v, %v: want the wait to end with an error", resp, err)
	}
	if err := <-c.end; err != nil {
		t.Error(err)
	}
}
