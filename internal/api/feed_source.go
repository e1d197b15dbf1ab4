package api

import (
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/store"
)

// sourceEvent is the data of an event of kind source.
type sourceEvent struct {
	What     string          `json:"what"`
	Source   string          `json:"source"`
	At       Instant         `json:"at"`
	Run      string          `json:"run,omitempty"`
	Progress *SourceProgress `json:"progress,omitempty"`
}

// SourceProgress is what a run of a source has done so far.
type SourceProgress struct {
	Pages       int64 `json:"pages"`
	Requests    int64 `json:"requests"`
	Bytes       int64 `json:"bytes"`
	RowsRead    int64 `json:"rowsRead"`
	RowsNew     int64 `json:"rowsNew"`
	RowsChanged int64 `json:"rowsChanged"`
	RowsSame    int64 `json:"rowsSame" doc:"Rows that were there already, as they are."`
	Rejects     int64 `json:"rejects"`
}

// ObserveSource tells of what happens to sources; it is made for
// source.Options.
func (f *Feed) ObserveSource(c source.Change) {
	if !f.awake.Load() {
		return
	}
	e := sourceEvent{What: c.What, Source: c.Source, At: Instant{c.At}, Run: c.Run}
	if c.Run != "" {
		p := sourceProgress(c.Progress)
		e.Progress = &p
	}
	f.publish("source", c.Source, subject{}, e)
}

func sourceProgress(p store.SourceProgress) SourceProgress {
	return SourceProgress{
		Pages: p.Pages, Requests: p.Requests, Bytes: p.Bytes, RowsRead: p.RowsRead, RowsNew: p.RowsNew, RowsChanged: p.RowsChanged, RowsSame: p.Same, Rejects: p.Rejects,
	}
}
