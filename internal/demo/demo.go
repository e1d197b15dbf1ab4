package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/server"
)

// Config says how the demo is shown.
type Config struct {
	Out    io.Writer
	Colour bool
	Addr   string        // of the server; port 0 is any free one
	Dir    string        // of its data; empty is a temporary folder
	Once   bool          // end when the scenes are over
	Length time.Duration // how long it goes on; zero is until ctx ends

	// Program is how this program is called on a command line; empty is pawl.
	Program string
}

// Run shows the demo and returns an error if a promise was broken. The end of
// ctx is a regular end.
func Run(ctx context.Context, cfg Config) error {
	dir, remove, err := openDir(cfg.Dir)
	if err != nil {
		return err
	}
	defer remove()
	st := &story{out: cfg.Out, colour: cfg.Colour}
	out, err := openOutside(ctx, st.note)
	if err != nil {
		return err
	}
	defer out.close()
	r, err := furnish(dir, out)
	if err != nil {
		return err
	}
	h, err := openHouse(ctx, serverConfig(cfg.Addr, dir, r))
	if err != nil {
		return err
	}
	st.write(opening(h.started, dir, cfg))
	err = perform(ctx, cfg, h, newStage(out, st, r), dir)
	return errors.Join(err, h.close())
}

// openDir returns the folder of the data and what cleans it up.
func openDir(keep string) (dir string, remove func(), err error) {
	if keep != "" {
		return keep, func() {}, nil
	}
	dir, err = os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}

func serverConfig(addr, dir string, r rooms) server.Config {
	cfg := server.Default()
	cfg.Addr = addr
	cfg.Data = dir
	cfg.ConnectionDir = r.connections
	cfg.Providers = []string{r.provider}
	cfg.Database = "sqlite:" + filepath.Join(dir, "pawl.db")
	cfg.AllowPrivate = []string{"127.0.0.1/32"}
	cfg.Logs = io.Discard // the story tells it
	cfg.Drain = 3 * time.Second
	return cfg
}

func opening(s server.Started, dir string, cfg Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Pawl is running at %s with data in %s.\n", s.URL, dir)
	if !cfg.Once {
		fmt.Fprintf(&b, "Open in a browser (single use):  %s\n", s.SignInURL)
	}
	b.WriteString("\n")
	return b.String()
}

// goingOn says what can be done while the demo goes on.
func goingOn(s server.Started, dir string, cfg Config) string {
	until := "Press Ctrl-C to stop."
	if cfg.Length > 0 {
		until = "It stops on its own."
	}
	return fmt.Sprintf(`
The demo keeps running: letters arrive, prices change, orders are placed, and some need your approval. %s

  In a browser (single use, valid for 15 minutes):  %s
  In another terminal:
    export PAWL_URL=%s PAWL_DATA=%s
    %[5]s get lanes -w                  # watch all lanes
    %[5]s get approvals                 # list pending approvals; pawl approve RUN approves one
    %[5]s why %[6]s              # why it is waiting
    %[5]s status                        # what needs attention

`, until, s.SignInURL, s.URL, dir, cmp.Or(cfg.Program, "pawl"), largeOrdersName)
}

// perform plays the scenes, sums up, and goes on living if that is wanted.
func perform(ctx context.Context, cfg Config, h *house, s *stage, dir string) error {
	token, err := os.ReadFile(h.started.AdminTokenPath)
	if err != nil {
		return fmt.Errorf("read admin token: %w", err)
	}
	if s.api, err = client.New(client.Config{URL: h.started.URL, Token: strings.TrimSpace(string(token))}); err != nil {
		return err
	}
	defer s.api.Close()
	ctx, stop := lastUntil(ctx, cfg.Length, h)
	defer stop()
	total, err := s.playAll(ctx)
	if err != nil {
		return err
	}
	if !cfg.Once && ctx.Err() == nil {
		s.story.write(goingOn(h.started, dir, cfg))
		s.live(ctx)
	}
	return errors.Join(h.failure(), total.verdict())
}

// playAll plays the scenes and sums up.
func (s *stage) playAll(ctx context.Context) (tally, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watching, err := s.watch(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	total := playRound(ctx, s)
	stop()
	<-watching
	jobs, again := s.counts()
	s.story.write(total.summary(s.story, jobs, again, time.Since(began)))
	return total, nil
}

// lastUntil is a context that ends with errEnded when ctx does, when the demo
// has lasted long enough, or when the server is gone.
func lastUntil(ctx context.Context, length time.Duration, h *house) (context.Context, func()) {
	inner, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ended := func() { end(errEnded) }
	stopOuter := context.AfterFunc(ctx, ended)
	stopHouse := context.AfterFunc(h.ctx, ended)
	var timer *time.Timer
	if length > 0 {
		timer = time.AfterFunc(length, ended)
	}
	return inner, func() {
		stopOuter()
		stopHouse()
		if timer != nil {
			timer.Stop()
		}
		ended()
	}
}
