package api

import (
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store/sourcestore"
)

func sourceProgress(p sourcestore.SourceProgress) client.SourceProgress {
	return client.SourceProgress{
		Pages: p.Pages, Requests: p.Requests, Bytes: p.Bytes, RowsRead: p.RowsRead, RowsNew: p.RowsNew, RowsChanged: p.RowsChanged, RowsSame: p.Same, Rejects: p.Rejects,
	}
}
