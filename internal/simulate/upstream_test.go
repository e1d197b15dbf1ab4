package simulate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/lane"
	"github.com/pawlrun/pawl/internal/run"
	"github.com/pawlrun/pawl/internal/source/fetch"
	"github.com/pawlrun/pawl/internal/source/spec"
	"github.com/pawlrun/pawl/internal/source/table"
	"github.com/pawlrun/pawl/internal/store"
)

// upstream is the API that the source fetches, behind a network of pipes.
type upstream struct {
	w *world

	mu    sync.Mutex
	items map[string]int // id and value; guarded by mu, as are the others
	fates []string       // of the next requests
	first int64          // when the first page was last asked for, in ms
	conns []net.Conn
}

func newUpstream(w *world) *upstream { return &upstream{w: w, items: map[string]int{}} }

// dial connects a process.
func (u *upstream) dial(l *life) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		l.stands()
		if l.isDead() {
			return nil, net.ErrClosed
		}
		here, there := net.Pipe()
		u.mu.Lock()
		u.conns = append(u.conns, here, there)
		u.mu.Unlock()
		go u.serve(there)
		return here, nil
	}
}

func (u *upstream) serve(c net.Conn) {
	defer c.Close() //nolint:errcheck // whoever reads notices
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if !u.answer(c, req) {
			return
		}
	}
}

const pageSize = 2

// answer answers a request, and reports whether the connection lasts.
func (u *upstream) answer(c net.Conn, req *http.Request) bool {
	u.mu.Lock()
	fate := ""
	if len(u.fates) > 0 {
		fate, u.fates = u.fates[0], u.fates[1:]
	}
	ids := make([]string, 0, len(u.items))
	for id := range u.items {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int {
		if u.w.plan.cursor { // in the order in which they came
			return u.items[a] - u.items[b]
		}
		return strings.Compare(a, b)
	})
	if since, err := strconv.Atoi(req.URL.Query().Get("since")); err == nil {
		ids = slices.DeleteFunc(ids, func(id string) bool { return u.items[id] <= since })
	}
	page, _ := strconv.Atoi(req.URL.Query().Get("page"))
	if page <= 1 {
		u.first = time.Now().UnixMilli()
	}
	begin := min(max(page-1, 0)*pageSize, len(ids))
	end := min(begin+pageSize, len(ids))
	list := []any{}
	for _, id := range ids[begin:end] {
		list = append(list, map[string]any{"id": id, "n": u.items[id]})
	}
	body, _ := json.Marshal(map[string]any{"items": list, "more": end < len(ids)})
	u.mu.Unlock()
	u.w.note("upstream: page %d %s", page, fate)
	head := ""
	status := http.StatusOK
	switch fate {
	case "cut":
		return false
	case "half":
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:len(body)/2])
		return false
	case "garbage":
		body = []byte(`<html>`)
	case "slow":
		pass(8 * time.Second)
	case "busy":
		status, head = http.StatusTooManyRequests, "Retry-After: 3\r\n"
	case "error":
		status = http.StatusInternalServerError
	case "unauthorized":
		status = http.StatusUnauthorized
	}
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d X\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, head, len(body), body)
	return err == nil
}

func (u *upstream) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.conns {
		_ = c.Close()
	}
}

// feed is what is known of the source.
type feed struct {
	w      *world
	n      int
	healed int64
	gone   bool            // somebody deleted it, or tried to
	paused bool            // somebody paused it, or tried to
	rests  map[string]bool // the runs that had begun when it was paused; nil: it may go on
	since  atomic.Int64    // when something was last expected anew, in ms
}

const feedDefinition = `kind: source
name: feed
url: http://upstream.example.com/pages
table: items
response:
  dataPath: items
  fields: [{source: id, target: id}, {source: n, target: n, type: integer}]
write: {mode: upsert, key: [id]}
offsetPagination: {pageParam: page, limitParam: limit, limit: 2, hasMorePath: more}
schedule: interval:%ds
`

// makeItems makes the table of the source, as one before it did.
func makeItems(ctx context.Context, db *store.DB) error {
	list, err := spec.Parse("feed.yaml", fmt.Appendf(nil, feedDefinition, 30))
	if err != nil {
		return err
	}
	plan, err := table.New(db.Name(), list[0])
	if err != nil {
		return err
	}
	return db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := plan.Ensure(ctx, tx)
		return err
	})
}

func newFeed(w *world, r *rand.Rand) *feed {
	f := &feed{w: w}
	f.more(r)
	return f
}

func (f *feed) more(r *rand.Rand) {
	u := f.w.upstream
	u.mu.Lock()
	defer u.mu.Unlock()
	for range 1 + r.IntN(4) {
		f.n++
		id := r.IntN(9)
		if f.w.plan.cursor { // nothing changes that is there, or a page could pass over it
			id = f.n
		}
		u.items[fmt.Sprintf("i%d", id)] = f.n
	}
}

// apply puts the definition in force.
func (f *feed) apply(at, every int) {
	text := fmt.Sprintf(feedDefinition, every)
	if f.w.plan.judged {
		text += "expect: {freshWithin: " + fresh.String() + "}\n"
	}
	if f.w.plan.cursor {
		text += "incremental: {param: since, cursorPath: n}\n"
	}
	if f.w.shop != nil {
		text += "publish: {workflow: shop, topic: in}\n"
	}
	list, err := spec.Parse("feed.yaml", []byte(text))
	if err != nil {
		f.w.fail("the definition: %v", err)
		return
	}
	f.w.touch()
	defer f.w.touch()
	err = f.w.try(at, func(l *life) error {
		return l.db.Write(l.ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := l.sources.Apply(ctx, tx, list[0], "tester")
			return err
		})
	})
	f.since.Store(time.Now().UnixMilli())
	f.w.note("apply source every %ds: %v", every, err)
	f.w.refused("apply", err)
}

func (f *feed) act(r *rand.Rand, what string) {
	switch what {
	case "items":
		f.more(r)
	case "bad upstream":
		u := f.w.upstream
		u.mu.Lock()
		for range 1 + r.IntN(3) {
			u.fates = append(u.fates, pick(r, []string{"", "cut", "half", "garbage", "slow", "busy", "error", "unauthorized"}))
		}
		u.mu.Unlock()
		f.more(r)
		f.command(r, "fetch now")
	case "delete source":
		f.delete(r)
	case "edit source":
		f.apply(r.IntN(len(f.w.nodes)), pick(r, []int{30, 45, 60}))
	default:
		f.command(r, what)
	}
}

func (f *feed) command(r *rand.Rand, what string) {
	f.paused = f.paused || what == "pause source"
	f.since.Store(time.Now().UnixMilli())
	var begun map[string]bool
	if what == "resume source" {
		f.rests = nil
	}
	err := f.w.do(r, what, func(ctx context.Context, l *life, tx *store.Tx) (err error) {
		switch what {
		case "pause source":
			if _, err = l.sources.Pause(ctx, tx, "feed", "tester", lane.PauseTerms{}); err == nil {
				begun, err = firstAttempts(ctx, tx, pawl.KindSource)
			}
		case "resume source":
			_, err = l.sources.Resume(ctx, tx, "feed", "tester")
		case "fetch now":
			err = l.sources.RunNow(ctx, tx, "feed", "tester")
		}
		return err
	})
	if err == nil && what == "pause source" {
		f.rests = begun
	}
}

func (f *feed) heal(r *rand.Rand, round int) bool {
	if round == 0 {
		f.w.upstream.mu.Lock()
		f.w.upstream.fates = nil
		f.w.upstream.mu.Unlock()
		f.restore()
		f.healed = time.Now().UnixMilli()
		f.command(r, "resume source")
		f.command(r, "fetch now")
	}
	if f.quiet() {
		return true
	}
	if round%3 == 2 {
		f.command(r, "resume source")
		f.command(r, "fetch now")
	}
	return false
}

// quiet reports whether the source has fetched since all is well, from the first
// page on: a fetch that was put off goes on where it was.
func (f *feed) quiet() bool {
	f.w.upstream.mu.Lock()
	first := f.w.upstream.first
	f.w.upstream.mu.Unlock()
	if first <= f.healed {
		return false
	}
	active := f.w.rows(`select id||'' from runs where kind = 'source' and status = 'active'`)
	since := f.w.rows(`select id||'' from runs where kind = 'source' and status = 'committed' and ended_at >= $1`, first)
	return len(active) == 0 && len(since) > 0
}

// check holds that the table is what the upstream has, and that every row that
// was new or changed became one event.
func (f *feed) check() {
	w := f.w
	have := map[string]int{}
	for _, row := range w.rows(`select id||'', n||'' from items`) {
		if _, twice := have[row[0]]; twice {
			w.fail("item %s is there twice", row[0])
		}
		have[row[0]] = int(atoi(row[1]))
	}
	for id, n := range w.upstream.items {
		if have[id] != n {
			w.fail("item %s is %d upstream and %d in the table", id, n, have[id])
		}
	}
	if len(have) != len(w.upstream.items) {
		w.fail("the table has %d items, and the upstream %d", len(have), len(w.upstream.items))
	}
	f.checkNotices()
	for _, code := range []string{fetch.CodeNetwork, fetch.CodeStatus, fetch.CodeTruncated} {
		w.hasty(pawl.KindSource, code, time.Minute)
	}
	if w.shop != nil && !w.pruned && !f.gone {
		told := w.rows(`select sum(rows_new + rows_changed)||'' from source_runs`)
		events := w.rows(`select count(*)||'' from events where topic = 'in' and message_id not like 'e%' and message_id not like 'p%'`)
		if told[0][0] != events[0][0] {
			w.fail("%s rows were new or changed, and %s became events", told[0][0], events[0][0])
		}
	}
	if l := w.alive()[0]; true {
		switch y, err := l.sources.Why(context.Background(), lane.Viewer{}, "feed", time.Time{}); {
		case err != nil:
			w.fail("why: %v", err)
		case y.State != run.Idle && y.State != run.Running:
			w.fail("people see the source %s (%s)", y.State, y.Sentence)
		}
	}
}
