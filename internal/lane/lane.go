package lane

import (
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/store/runstore"
	"github.com/pawlrun/pawl/internal/terms"
)

// Ref names a lane. Where names belong to their owners the key is the lane's id;
// elsewhere it is the name.
type Ref struct {
	Kind  pawl.Kind
	Key   string
	Name  string
	Owned bool // only its owner, and whoever administers the kind, may know of it
}

// Named is a lane whose name is its key.
func Named(kind pawl.Kind, name string) Ref { return Ref{Kind: kind, Key: name, Name: name} }

// OwnedBy is a lane that is known by its id, because its name is its owner's.
func OwnedBy(kind pawl.Kind, id, name string) Ref {
	return Ref{Kind: kind, Key: id, Name: name, Owned: true}
}

// Place is where a list of lanes goes on: they are in the order of their names,
// and of their keys where several have one name.
func (r Ref) Place() Place { return Place{r.Name, r.Key} }

// Place is the last lane of the page before.
type Place struct{ Name, Key string }

// String is the place as cursors carry it.
func (p Place) String() string { return p.Name + " " + p.Key }

// ParsePlace is the place that a cursor carries.
func ParsePlace(text string) Place {
	i := strings.LastIndexByte(text, ' ')
	if i < 0 {
		return Place{Name: text}
	}
	return Place{text[:i], text[i+1:]}
}

// Lane is something that runs by itself, as people see it (A-143..A-147).
type Lane struct {
	Ref
	ID          string
	State       run.State
	Issue       run.Issue
	Sentence    string // the issue in plain language; empty if there is none
	Schedule    string // in words
	NextAt      time.Time
	LastAt      time.Time // of the last activity
	LastText    string
	Pending     int  // how much waits to be worked on
	PendingMore bool // or more: of very many events only the first are looked at
	Paused      bool
	Pause       runstore.Pause // what was said about that; zero if nobody knows
	Labels      map[string]string
	Do          string // the command that ends what the state and the issue tell; empty while it is idle

	Expectations []terms.Verdict // what is expected of it, and whether it is met
}

// Gate is one condition of running, and whether it is met.
type Gate struct {
	Name  string
	Open  bool
	Text  string
	Until time.Time // when it opens by itself; zero if that is not known
}

// Why is what a lane does next and why, and why it does not do more.
type Why struct {
	Lane
	At     time.Time
	Next   string // what it does next, in words
	Gates  []Gate
	Recent []runstore.Run // the newest first
	Around *Around        // nil unless an instant was asked for
	Slot   *client.Slot   // of a schedule: that of the instant, or the one before it
}
