package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/pawlrun/pawl/internal/source/spec"
)

// Position is how far a fetch has come. It is stored as JSON; the zero value is
// the first page.
type Position struct {
	Page    int      `json:"page,omitempty"`    // pages that are done
	Offset  int64    `json:"offset,omitempty"`  // rows that came, with those that did not fit
	Cursor  string   `json:"cursor,omitempty"`  // of the page to ask for
	NextURL string   `json:"nextUrl,omitempty"` // of the page to ask for, without credentials
	Size    int      `json:"size,omitempty"`    // rows of the first page
	Short   bool     `json:"short,omitempty"`   // its pages are not full, and nothing says which is the last
	Seen    []string `json:"seen,omitempty"`    // hashes of the latest cursors, links and contents
}

// maxSeen bounds Position.Seen. A page adds at most two hashes, so that circles
// of up to 64 pages are seen.
const maxSeen = 128

// Ask is what to fetch.
type Ask struct {
	Definition spec.Definition // normalised
	From       Position        // where the whole fetch begins
	Since      string          // value of incremental.param; empty: it is not sent
	At         time.Time       // the instant that the fetch stands for
	Spool      string          // folder for pages that are too big for the memory
}

// The limits of a definition that names none.
const (
	defaultMaxPages = 10_000
	defaultMaxBytes = 1 << 30
)

func (a Ask) maxPages() int {
	if n := a.Definition.Response.MaxPages; n > 0 {
		return n
	}
	return defaultMaxPages
}

func (a Ask) maxBytes() int64 {
	if n := a.Definition.Response.MaxBytes; n > 0 {
		return n
	}
	return defaultMaxBytes
}

// saw reports whether a hash is one of those that were seen.
func (p Position) saw(hash string) bool { return slices.Contains(p.Seen, hash) }

// remember adds a hash and forgets the oldest, if there are too many. The
// position that it was taken from is not changed.
func (p *Position) remember(hash string) {
	p.Seen = append(slices.Clone(p.Seen), hash)
	if over := len(p.Seen) - maxSeen; over > 0 {
		p.Seen = p.Seen[over:]
	}
}

// digest names a cursor or a link in Position.Seen.
func digest(kind byte, text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(kind) + hex.EncodeToString(sum[:8])
}
