package main

import "time"

// sizes says how much of everything a scenario does.
type sizes struct {
	Warm     int           // jobs before every measurement
	Patience time.Duration // for one drain
	Rounds   int           // of a scenario that is repeated at all

	Each, Callers, Bulk int           // enqueue
	Drain               int           // drain
	Parked, Beside      int           // future
	PacedJobs           int           // latency
	PacedEvery          time.Duration //
	Timers              int           // timers
	TimerStep           time.Duration //
	IdleParked          int           // idle
	IdleFor             time.Duration //
	LaneJobs, Lanes     int           // lanes and skew
	FewLanes, Waiting   int           // crowd
}

func fullSizes() sizes {
	return sizes{
		Warm: 2000, Patience: 3 * time.Minute, Rounds: 3,
		Each: 10_000, Callers: 16, Bulk: 100_000,
		Drain:  100_000,
		Parked: 1_000_000, Beside: 20_000,
		PacedJobs: 2000, PacedEvery: 5 * time.Millisecond,
		Timers: 2000, TimerStep: 10 * time.Millisecond,
		IdleParked: 100_000, IdleFor: 10 * time.Second,
		LaneJobs: 20_000, Lanes: 2000,
		FewLanes: 50, Waiting: 1_000_000,
	}
}

// quickSizes is a tenth of everything: enough to see that all of it works.
func quickSizes() sizes {
	return sizes{
		Warm: 200, Patience: time.Minute, Rounds: 1,
		Each: 1000, Callers: 16, Bulk: 10_000,
		Drain:  10_000,
		Parked: 100_000, Beside: 2000,
		PacedJobs: 200, PacedEvery: 5 * time.Millisecond,
		Timers: 200, TimerStep: 10 * time.Millisecond,
		IdleParked: 10_000, IdleFor: 3 * time.Second,
		LaneJobs: 2000, Lanes: 200,
		FewLanes: 50, Waiting: 50_000,
	}
}
