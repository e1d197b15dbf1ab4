package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/cli/client"
	"github.com/pawlrun/pawl/internal/server"
)

// Config says how the demo is shown.
type Config struct {
	Out    io.Writer
	Colour bool
	Addr   string        // of the server; port 0 is any free one
	Dir    string        // of its data; empty is a temporary folder
	Once   bool          // one round
	Length time.Duration // how long it goes on; zero is until ctx ends
}

// betweenRounds is how long the stage is quiet.
const betweenRounds = 2 * time.Second

// Run shows the demo and returns an error if a promise was broken. The end of
// ctx is a regular end.
func Run(ctx context.Context, cfg Config) error {
	dir, remove, err := openDir(cfg.Dir)
	if err != nil {
		return err
	}
	defer remove()
	d, err := openDesk(ctx)
	if err != nil {
		return err
	}
	defer d.close()
	letters, err := furnish(dir)
	if err != nil {
		return err
	}
	h, err := openHouse(ctx, serverConfig(cfg.Addr, dir, letters))
	if err != nil {
		return err
	}
	st := &story{out: cfg.Out, colour: cfg.Colour}
	st.print(opening(h.started, dir, cfg))
	err = perform(ctx, cfg, h, d, st, letters)
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

func serverConfig(addr, dir, connections string) server.Config {
	cfg := server.Default()
	cfg.Addr = addr
	cfg.Data = dir
	cfg.ConnectionDir = connections
	cfg.Database = "sqlite:" + filepath.Join(dir, "pawl.db")
	cfg.AllowPrivate = []string{"127.0.0.1/32"}
	cfg.Logs = io.Discard // the story tells it
	cfg.Drain = 3 * time.Second
	return cfg
}

func opening(s server.Started, dir string, cfg Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "A Pawl server is running at %s, with its data in %s.\n", s.URL, dir)
	if !cfg.Once {
		fmt.Fprintf(&b, "Look at it from another terminal:  pawl get jobs -w --server %s --data %s\n", s.URL, dir)
	}
	if !cfg.Once && cfg.Length == 0 {
		b.WriteString("Ctrl-C ends it.\n")
	}
	b.WriteString("\n")
	return b.String()
}

// perform plays rounds until the demo ends, and sums up.
func perform(ctx context.Context, cfg Config, h *house, d *desk, st *story, letters string) error {
	token, err := os.ReadFile(h.started.AdminTokenPath)
	if err != nil {
		return fmt.Errorf("read admin token: %w", err)
	}
	api, err := client.New(client.Config{URL: h.started.URL, Token: strings.TrimSpace(string(token))})
	if err != nil {
		return err
	}
	defer api.Close()
	ctx, stop := lastUntil(ctx, cfg.Length, h)
	defer stop()
	s := newStage(api, d, st, letters)
	watching, err := s.watch(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	total := newTally()
	for {
		s.begin()
		total.add(playRound(ctx, s))
		if cfg.Once || pause(ctx, betweenRounds) != nil {
			break
		}
	}
	stop()
	<-watching
	jobs, again := s.counts()
	st.print(total.summary(st, jobs, again, time.Since(began)))
	return errors.Join(h.failure(), total.verdict())
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
