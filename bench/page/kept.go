package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/pawlrun/pawl/bench/measure"
	"github.com/pawlrun/pawl/internal/bulk"
)

// answered is what was measured of an address.
type answered struct {
	Path       string
	P50, P99   time.Duration
	Used       time.Duration // of the processor
	Statements int
	Pages      int64
}

func (h *house) measure(ctx context.Context, meter bulk.Meter, path string, s plan, plans io.Writer) (a answered, err error) {
	took, used, err := h.repeat(ctx, path, s)
	if err != nil {
		return a, err
	}
	a = answered{Path: path, P50: measure.At(took, 0.5), P99: measure.At(took, 0.99), Used: used}
	a.Statements, a.Pages, err = h.cost(ctx, meter, path, plans)
	return a, err
}

// keep adds what was measured to a file.
func (a answered) keep(file string) error {
	if file == "" {
		return nil
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// readKept reads what was measured before.
func readKept(file string) (map[string]answered, error) {
	known := map[string]answered{}
	f, err := os.Open(file)
	if file == "" || errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read from
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var a answered
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return nil, err
		}
		known[a.Path] = a
	}
	return known, nil
}
