package source

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/pawlrun/pawl/internal/source/table"
)

// events names rows for the workflow that gets them. A row that comes again
// with another content is another event; the same content is the same one.
func (f *fetching) events(rows []table.Changed) []Row {
	out := make([]Row, len(rows))
	for i, r := range rows {
		sum := sha256.Sum256(r.Row)
		out[i] = Row{MessageID: f.view.source.Name + ":" + r.Key + ":" + hex.EncodeToString(sum[:8]), Key: r.Key, Payload: r.Row}
	}
	return out
}
