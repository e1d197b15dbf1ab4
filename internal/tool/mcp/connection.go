package mcp

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Connection is the connection to one server.
type Connection struct {
	cfg    config
	http   *outbound.Client
	log    *slog.Logger
	redact redact.Redactor
	book   *book

	// life ends when the connection is closed; whatever it started ends then.
	life    context.Context
	endLife context.CancelFunc
	begin   sync.Once
	working sync.WaitGroup
	tried   chan struct{} // closed when the first attempt to connect is over

	mu      sync.Mutex
	live    *session              // nil while there is none
	news    chan struct{}         // closed, and made anew, whenever live or failure changes
	failure *connector.Error      // why there is no session
	next    time.Time             // when it is tried again
	misses  int                   // attempts in a row that failed
	tools   map[string]definition // as the server told last; nil until it did
	home    string                // the home of the program; empty until it is made
}

// The promises that callers look for.
var (
	_ connector.Connection = (*Connection)(nil)
	_ connector.Starter    = (*Connection)(nil)
	_ connector.Pinner     = (*Connection)(nil)
	_ connector.Tester     = (*Connection)(nil)
)

// New makes the connection that a definition describes; see readConfig. It
// reads the pins and starts nothing.
func New(s *connector.Settings) (connector.Connection, bool) {
	cfg, ok := readConfig(s)
	if !ok {
		return nil, false
	}
	c := newConnection(cfg, s.Env, redact.New(s.Secrets()))
	if s.CheckOnly {
		return c, true
	}
	if err := c.book.load(); err != nil {
		s.Add("", "%s. Repair the file, or remove it to pin again", err)
		return nil, false
	}
	return c, true
}

func newConnection(cfg config, env connector.Env, redact redact.Redactor) *Connection {
	log := env.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Connection{
		cfg: cfg, http: env.HTTP, log: log.With("connection", cfg.name), redact: redact, book: newBook(cfg),
		tried: make(chan struct{}), news: make(chan struct{}),
	}
	c.life, c.endLife = context.WithCancel(context.Background())
	return c
}

// Start connects to the server and waits some seconds for that.
func (c *Connection) Start() {
	c.run()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-c.tried:
	case <-c.life.Done():
	case <-limit.C:
	}
}

// run makes sure that somebody looks after the session.
func (c *Connection) run() {
	c.begin.Do(func() { c.working.Go(c.supervise) })
}

// spawn does something in the background, unless the connection is closed.
func (c *Connection) spawn(work func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() == nil {
		c.working.Go(work)
	}
}

// Close ends the session and the program, and waits until they are gone. Calls
// under way are interrupted.
func (c *Connection) Close() error {
	c.mu.Lock()
	c.endLife()
	c.mu.Unlock()
	c.begin.Do(func() {}) // what did not begin by now never will
	c.working.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.home == "" {
		return nil
	}
	home := c.home
	c.home = ""
	return os.RemoveAll(home)
}

// Methods lists the tools that the server told about last, and those that are
// pinned. A tool that is blocked has the class that it was pinned with: it is
// not called in any case, and a script is told that it changed, rather than
// that it is not allowed where it was.
func (c *Connection) Methods() []connector.Method {
	c.mu.Lock()
	all := maps.Clone(c.tools)
	c.mu.Unlock()
	if all == nil {
		all = map[string]definition{}
	}
	for _, name := range c.book.names() {
		if d, ok := c.book.known(name); ok {
			all[name] = d
		}
	}
	var methods []connector.Method
	for _, name := range slices.Sorted(maps.Keys(all)) {
		methods = append(methods, connector.Method{Name: name, Mutation: c.cfg.mutation(all[name])})
	}
	return methods
}

// Reconcile answers Later: the protocol cannot be asked about a call.
func (c *Connection) Reconcile(context.Context, connector.Call) (connector.Answer, error) {
	return connector.Answer{State: connector.Later}, errors.New("MCP servers cannot be asked about earlier calls")
}

// tool is a tool as the server told last.
func (c *Connection) tool(name string) (definition, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.tools[name]
	return d, ok
}

// clean makes what came from the server, or from the SDK, fit for messages.
func (c *Connection) clean(err error) error { return errors.New(c.redact.Text(err.Error())) }
