package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/run"
)

// bound is how long what is due may wait when nothing is wrong: for a lease that
// has to end and be noticed, and for those that were asked before.
func (w *world) bound() time.Duration {
	w.mu.Lock()
	skew := w.skew
	w.mu.Unlock()
	if w.plan.shared {
		return 2*lease + 5*time.Second + skew
	}
	return 6*time.Second + skew
}

// checkAlways holds what must be true at any time.
func (w *world) checkAlways() {
	w.checkHalt()
	w.checkRetries()
	w.checkBuried()
	if w.looks++; !w.healing || w.looks%4 == 0 { // which costs more than the others
		w.checkTold()
	}
	if w.calendar != nil {
		w.calendar.checkPlanned()
	}
	if w.feed != nil {
		w.rested(pawl.KindSource, w.feed.rests)
	}
	if w.shop != nil {
		w.shop.checkPlaces()
		w.shop.checkAsked()
		w.rested(pawl.KindWorkflow, w.shop.paused)
	}
	w.mu.Lock()
	since := time.Since(w.fault)
	w.mu.Unlock()
	if since < w.bound() || len(w.alive()) < len(w.nodes) {
		return
	}
	if !w.isHalted() {
		if w.plan.judged && w.feed != nil {
			w.feed.checkSilence()
		}
		w.checkDue()
		if w.calendar != nil {
			w.calendar.checkReplaced()
		}
		if w.shop != nil {
			w.shop.checkApart()
			w.shop.checkWoken()
		}
	}
	w.checkShares()
}

// checkBuried holds that nobody is taken for dead because the database stood still for
// all: a node that was buried joins anew, and its heartbeat begins anew.
func (w *world) checkBuried() {
	if !w.plan.shared {
		return
	}
	now := map[string]int64{}
	for _, row := range w.rows(`select id||'', incarnation||'', beat||'' from nodes`) {
		now[row[0]+" "+row[1]] = atoi(row[2])
	}
	for _, l := range w.alive() {
		l.mu.Lock()
		own := l.own
		l.mu.Unlock()
		for name, beat := range w.beats {
			if id, _, _ := strings.Cut(name, " "); id == l.n.id && !own && now[name] != 0 && now[name] < beat && l.born.Before(w.beatsAt) {
				w.fail("node %d was taken for dead, and nothing had happened to it alone", l.n.index)
			}
		}
	}
	w.beats, w.beatsAt = now, time.Now()
}

// checkRetries holds that a lane that waits for another attempt has failed: how often is
// what ends its attempts.
func (w *world) checkRetries() {
	for _, row := range w.rows(`select kind||'', lane||'' from retries where next_retry_at is not null and retry_count = 0 and crash_count = 0`) {
		w.fail("the lane of the %s (%s) backs off, and its failures are not counted", row[0], row[1])
	}
}

// checkDue holds that whatever is due runs: there is no lost wake-up.
func (w *world) checkDue() {
	late := time.Now().Add(-w.bound()).UnixMilli()
	rows := w.rows(`select id||'', coalesce(lane, '')||'', task||'', run_at||'' from jobs where state = 0 and run_at <= $1`, time.Now().UnixMilli())
	busy, full, hands := map[string]bool{}, false, map[*life]int{}
	waits := [][]string{}
	for _, row := range rows {
		id, _ := strconv.ParseInt(row[0], 10, 64)
		running := false
		for _, l := range w.alive() {
			if l.queue.IsRunning(id) {
				running = true
				hands[l]++
				full = full || hands[l] >= workersOf-1 // one may be between two jobs
			}
		}
		at, _ := strconv.ParseInt(row[3], 10, 64)
		switch {
		case running:
			busy[row[1]] = true
		case at <= late:
			waits = append(waits, row)
		}
	}
	for _, row := range waits {
		if (row[1] == "" || !busy[row[1]]) && !(full && row[2] == jobTask) { // it may wait for a worker
			w.fail("job %s of %s (lane %q) has been due for %v, and nobody runs it", row[0], row[2], row[1], time.Since(time.UnixMilli(atoi(row[3]))))
		}
	}
}

func atoi(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// checkShares holds that every share is held by one of the living.
func (w *world) checkShares() {
	for _, row := range w.rows(`select id||'', coalesce(node, '')||'' from buckets`) {
		held := false
		for _, n := range w.nodes {
			held = held || n.id == row[1]
		}
		if !held {
			w.fail("share %s belongs to %q, who is not there", row[0], row[1])
		}
	}
	for _, l := range w.alive() {
		if err := l.queue.Health(); err != nil {
			w.fail("node %d is not well: %v", l.n.index, err)
		}
	}
}

// settled reports whether the nodes have shared the lanes.
func (w *world) settled() bool {
	for _, row := range w.rows(`select coalesce(node, '')||'' from buckets`) {
		held := false
		for _, n := range w.nodes {
			held = held || n.id == row[0]
		}
		if !held {
			return false
		}
	}
	return true
}

// checkEnd holds what must be true when all is well and done.
func (w *world) checkEnd() {
	w.checkJobs()
	for _, lane := range w.lanes() {
		lane.check()
	}
}

// troubled is a lane that is in need of somebody by its row, and why; empty: none
// is.
func (w *world) troubled() string {
	for _, row := range w.rows(`select kind||'', state||'', coalesce(cause, '')||'', coalesce(text, '')||'' from lanes`) {
		if row[1] != string(run.Idle) || row[2] != "" {
			return fmt.Sprintf("the row of the %s says %s (%s: %s)", row[0], row[1], row[2], row[3])
		}
	}
	return ""
}
