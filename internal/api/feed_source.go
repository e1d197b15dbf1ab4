package api

import (
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/source"
	"github.com/pawlrun/pawl/internal/store"
)

// ObserveSource tells of what happens to sources; it is made for
// source.Options.
func (f *Feed) ObserveSource(c source.Change) {
	if !f.awake.Load() {
		return
	}
	e := client.SourceEvent{What: c.What, Source: c.Source, At: client.At(c.At), Run: c.Run}
	if c.Run != "" {
		p := sourceProgress(c.Progress)
		e.Progress = &p
	}
	f.publish("source", c.Source, subject{}, e)
}

func sourceProgress(p store.SourceProgress) client.SourceProgress {
	return client.SourceProgress{
		Pages: p.Pages, Requests: p.Requests, Bytes: p.Bytes, RowsRead: p.RowsRead, RowsNew: p.RowsNew, RowsChanged: p.RowsChanged, RowsSame: p.Same, Rejects: p.Rejects,
	}
}
