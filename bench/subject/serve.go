package subject

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// finishPoll is how often the store is asked whether all jobs are finished;
// it bounds how much the question can add to a measurement.
const finishPoll = 2 * time.Millisecond

// server answers requests about one subject.
type server struct {
	subject  Subject
	recorder atomic.Pointer[Recorder]
}

// Serve answers requests from in on out until close, the end of in, or an
// error of the pipe.
func Serve(ctx context.Context, s Subject, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	srv := &server{subject: s}
	requests := make(chan Request)
	readErr := make(chan error, 1)
	go func() {
		defer cancel() // a parent that went away ends whatever is under way
		readErr <- readRequests(ctx, in, requests)
	}()
	enc := json.NewEncoder(out)
	for {
		select {
		case <-ctx.Done():
			return errors.Join(<-readErr, srv.subject.Cleanup(context.WithoutCancel(ctx)))
		case req := <-requests:
			resp, err := srv.answer(ctx, req)
			if err != nil {
				resp.Error = fmt.Sprintf("%s: %v", req.Op, err)
			}
			if err := enc.Encode(resp); err != nil {
				return fmt.Errorf("write response: %w", err)
			}
			if req.Op == OpClose {
				return nil
			}
		}
	}
}

func readRequests(ctx context.Context, in io.Reader, requests chan<- Request) error {
	dec := json.NewDecoder(bufio.NewReader(in))
	for {
		var req Request
		if err := dec.Decode(&req); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		select {
		case requests <- req:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *server) answer(ctx context.Context, req Request) (Response, error) {
	switch req.Op {
	case OpSetup:
		return Response{}, s.subject.Setup(ctx, req.Config)
	case OpExpect:
		s.recorder.Store(NewRecorder(req.Batch))
		return Response{}, nil
	case OpBulk:
		took, err := enqueueBulk(ctx, s.subject, req.Batch)
		return Response{Seconds: took.Seconds()}, err
	case OpEach:
		took, err := enqueueEach(ctx, s.subject, req.Batch, req.Callers)
		return Response{Seconds: took.Seconds()}, err
	case OpPaced:
		every := time.Duration(req.EveryUS) * time.Microsecond
		return Response{}, enqueuePaced(ctx, s.subject, req.Batch, every, s.recorder.Load())
	case OpStart:
		return Response{}, s.subject.Start(ctx, func(seq int) { s.recorder.Load().Handle(seq) })
	case OpWait:
		return s.wait(ctx, time.Duration(req.TimeoutMS)*time.Millisecond)
	case OpSamples:
		return Response{Samples: s.recorder.Load().Samples()}, nil
	case OpStop:
		err := s.subject.Stop(ctx)
		tally := s.recorder.Load().Tally()
		return Response{Tally: &tally}, err
	case OpClose:
		return Response{}, s.subject.Cleanup(ctx)
	}
	return Response{}, errors.New("unknown request")
}

// wait answers with the tally even when the time is up, so that the report
// can say how far the queue came.
func (s *server) wait(ctx context.Context, timeout time.Duration) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := s.recorder.Load()
	finishedAt, err := s.waitFinished(ctx, r)
	tally := r.Tally()
	if err != nil {
		return Response{Tally: &tally}, fmt.Errorf("%d of %d jobs handled: %w", tally.Handled, r.batch.Count, err)
	}
	tally.FinishedUS = finishedAt.UnixMicro()
	return Response{Tally: &tally}, nil
}

func (s *server) waitFinished(ctx context.Context, r *Recorder) (time.Time, error) {
	select {
	case <-r.all:
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	for {
		done, err := s.subject.Finished(ctx)
		if err != nil {
			return time.Time{}, fmt.Errorf("ask the store: %w", err)
		}
		if done {
			return time.Now(), nil
		}
		select {
		case <-time.After(finishPoll):
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}
