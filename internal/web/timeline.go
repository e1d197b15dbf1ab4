package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/runstore"
)

// The timeline draws a line for each lane: what ran on the left of now, what
// comes due on the right. A line is an SVG of lineWidth units, which the page
// stretches; every lane costs one bounded read, however much it ran.

const (
	lineWidth = 1000.0 // units

	// segments of the axis; the past has all but the last futureSegments.
	segments       = 6
	futureSegments = 2

	// markWidth is the narrowest mark, in units. What is nearer than that is
	// drawn as one mark, and the worst of it gives the colour.
	markWidth = 4.0

	linesPerPage = 25
	marksRead    = 400 // runs of a lane
	dueShown     = 300 // instants of a lane
)

// timelineSpan is how much time is drawn.
type timelineSpan struct {
	Name    string // in the address
	Text    string
	step    time.Duration // of a segment
	unit    time.Duration
	unitFor string
}

func timelineSpans() []timelineSpan {
	return []timelineSpan{
		{"6m", "6 minutes", time.Minute, time.Minute, "min"},
		{"30m", "30 minutes", 5 * time.Minute, time.Minute, "min"},
		{"6h", "6 hours", time.Hour, time.Hour, "h"},
		{"24h", "A day", 4 * time.Hour, time.Hour, "h"},
		{"6d", "6 days", 24 * time.Hour, 24 * time.Hour, "d"},
	}
}

// timelineWindow is the time that is drawn.
type timelineWindow struct {
	span          timelineSpan
	from, now, to time.Time
}

func windowAt(now time.Time, span timelineSpan) timelineWindow {
	return timelineWindow{span, now.Add(-(segments - futureSegments) * span.step), now, now.Add(futureSegments * span.step)}
}

// x is where an instant is on a line.
func (w timelineWindow) x(at time.Time) float64 {
	return lineWidth * float64(at.Sub(w.from)) / float64(w.to.Sub(w.from))
}

// axisLabel is a line of the axis.
type axisLabel struct {
	Text string
	At   time.Time
	X    float64
	Now  bool
}

func (w timelineWindow) axis() (out []axisLabel) {
	for i := range segments + 1 {
		d := time.Duration(i-segments+futureSegments) * w.span.step
		label := axisLabel{At: w.now.Add(d), X: lineWidth * float64(i) / segments, Now: d == 0}
		switch n := number(int(d.Abs() / w.span.unit)); {
		case d < 0:
			label.Text = "−" + n + " " + w.span.unitFor
		case d > 0:
			label.Text = "+" + n + " " + w.span.unitFor
		default:
			label.Text = "now"
		}
		out = append(out, label)
	}
	return out
}

// timelineMark is something that ran, or comes due.
type timelineMark struct {
	X, Width float64
	Tone     string // as of states; next is what comes due, more what is not drawn one by one
	Title    string
	Href     string // of the run; empty if there is none, or it is many
}

// timelineLine is a lane with its marks.
type timelineLine struct {
	laneRow
	Marks []timelineMark
	Ran   int // that were read
	More  bool
	Bad   int
}

type timelinePage struct {
	Spans []timelineSpan
	Span  string
	Kind  string
	Kinds []string
	Axis  []axisLabel
	NowX  float64
	Lines []timelineLine
	Pager pager
}

func (s *Site) showTimeline(w http.ResponseWriter, r *http.Request, v *visit) {
	if !v.may("lanes", "read") || !v.may("runs", "read") {
		s.problem(w, r, &pawl.Error{Code: pawl.CodeForbidden, Msg: "this page needs the scopes lanes:read and runs:read", Hint: "Sign in with a token that has them."})
		return
	}
	query := r.URL.Query()
	spans := timelineSpans()
	window := windowAt(v.now, spans[1])
	if i := slices.IndexFunc(spans, func(t timelineSpan) bool { return t.Name == query.Get("span") }); i >= 0 {
		window = windowAt(v.now, spans[i])
	}
	out := timelinePage{Spans: spans, Span: window.span.Name, Kind: query.Get("kind"), Axis: window.axis(), NowX: window.x(v.now)}
	out.Kinds = s.kinds()
	rows, next, err := s.findLanes(r.Context(), v, laneFilter{Kind: out.Kind}, query.Get("cursor"), linesPerPage)
	if err == nil {
		out.Lines, err = s.timelineLines(r.Context(), rows, window)
	}
	if err != nil {
		s.problem(w, r, err)
		return
	}
	out.Pager = pagerOf(r, next)
	f := s.frameFor(r, v, "timeline", "Timeline")
	f.Live = everyLane
	s.show(w, r, "timeline.html", f, out)
}

// timelineLines reads the marks of lanes, in one transaction.
func (s *Site) timelineLines(ctx context.Context, rows []laneRow, w timelineWindow) (lines []timelineLine, err error) {
	err = s.cfg.DB.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		lines = make([]timelineLine, len(rows))
		return tx.Each(ctx, len(rows), func(ctx context.Context, tx *store.Tx, i int) error {
			lines[i] = timelineLine{laneRow: rows[i]}
			k, ok := s.cfg.Kinds.Get(rows[i].Kind)
			if !ok {
				return nil
			}
			if err := lines[i].addPast(ctx, tx, k, w); err != nil {
				return err
			}
			due, err := dueTimes(ctx, tx, k, &rows[i].Lane, w)
			lines[i].Marks = append(lines[i].Marks, due...)
			return err
		})
	})
	return lines, err
}

// addPast adds what ran.
func (l *timelineLine) addPast(ctx context.Context, tx *store.Tx, k lane.Kind, w timelineWindow) error {
	ran, err := l.ran(ctx, tx, k, w)
	if err != nil {
		return err
	}
	l.Ran, l.More = len(ran), len(ran) >= marksRead
	slices.Reverse(ran)
	if l.More {
		x := w.x(ran[0].from)
		l.Marks = append(l.Marks, timelineMark{X: 0, Width: max(markWidth, x), Tone: "more", Title: "More runs than can be drawn"})
	}
	for _, one := range ran {
		if one.tone == "bad" {
			l.Bad++
		}
		l.addMark(one, w)
	}
	return nil
}

// addMark draws a run, or lets it melt into the mark before it.
func (l *timelineLine) addMark(one ranMark, w timelineWindow) {
	end := one.to
	if end.IsZero() || end.After(w.now) {
		end = w.now
	}
	from := max(0, w.x(one.from))
	width := max(markWidth, w.x(end)-from)
	if n := len(l.Marks); n > 0 {
		last := &l.Marks[n-1]
		if last.Tone != "more" && from < last.X+max(last.Width, markWidth) && last.Width <= 2*markWidth && width <= 2*markWidth {
			last.Width = max(last.Width, from+width-last.X)
			if worse(one.tone, last.Tone) {
				last.Tone, last.Title, last.Href = one.tone, one.title, one.href
			}
			return
		}
	}
	l.Marks = append(l.Marks, timelineMark{from, width, one.tone, one.title, one.href})
}

// worse reports whether a tone should be seen rather than the other.
func worse(a, b string) bool {
	order := []string{"rest", "good", "run", "warn", "bad"}
	return slices.Index(order, a) > slices.Index(order, b)
}

// ranMark is a run before it is drawn.
type ranMark struct {
	from, to time.Time
	tone     string
	title    string
	href     string
}

// ran reads what a lane ran in the window, the newest first: slots where it has
// them, or else runs.
func (l *timelineLine) ran(ctx context.Context, tx *store.Tx, k lane.Kind, w timelineWindow) (out []ranMark, err error) {
	if hasSlots(k) {
		return slotMarks(ctx, tx, l.ID, w)
	}
	of, _, err := k.Find(ctx, tx, lane.Viewer{}, l.Name)
	if err != nil {
		return nil, err
	}
	runs, err := runstore.In(tx).RunMarks(ctx, l.Kind, of.Lane, w.from, w.to, marksRead)
	for _, one := range runs {
		if one.Count > 1 {
			text := instant(one.CreatedAt) + " to " + instant(one.Through) + " · " + plural(one.Count, "run", "runs") + " · found nothing to do"
			out = append(out, ranMark{latest(one.CreatedAt, w.from), one.Through, tone(string(one.Status)), text, "/runs/" + url.PathEscape(one.ID)})
			continue
		}
		out = append(out, ranMark{one.CreatedAt, restedAt(&one), tone(string(one.Status)), instant(one.CreatedAt) + " · " + called(string(one.Status)), "/runs/" + url.PathEscape(one.ID)})
	}
	return out, err
}

// restedAt is when a run is over, or was put off; zero while it goes on or waits
// for a person.
func restedAt(m *runstore.RunMark) time.Time {
	switch {
	case !m.EndedAt.IsZero():
		return m.EndedAt
	case m.Status == pawl.StatusActive, m.Status == pawl.StatusPausedApproval, m.Status == pawl.StatusPausedReconciliation:
		return time.Time{}
	}
	return m.CreatedAt
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
