package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// largestBook is in bytes. It is more than the largest list of tools needs.
const largestBook = 64 << 20

// book keeps the pins of a connection, in memory and in a file. It is safe for
// concurrent use.
type book struct {
	path  string
	fixed map[string]string // hashes by tool that the definition of the connection has

	mu    sync.Mutex
	pins  map[string]pin // by tool
	fault error          // why the file could not be used the last time
}

// pin is what was agreed to.
type pin struct {
	Hash string `json:"hash"`
	definition
}

// bookFile is the form of the file.
type bookFile struct {
	Note  string         `json:"note"`
	Tools map[string]pin `json:"tools"`
}

const bookNote = "What was agreed to about the tools of an MCP server. Change it with: pawl connections pin"

func newBook(cfg config) *book {
	b := &book{path: cfg.pinFile, fixed: map[string]string{}, pins: map[string]pin{}}
	for name, tool := range cfg.tools {
		if tool.Pin != "" {
			b.fixed[name] = tool.Pin
		}
	}
	return b
}

// load reads the file, if there is one. If it fails, the pins stay as they
// were: what cannot be read must not count as never pinned.
func (b *book) load() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loadLocked()
}

func (b *book) loadLocked() error {
	file, err := os.Open(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pins in %s: %w", b.path, connector.Reason(err))
	}
	defer func() { _ = file.Close() }() // only read from
	var read bookFile
	if err := json.NewDecoder(io.LimitReader(file, largestBook)).Decode(&read); err != nil {
		return fmt.Errorf("read the pins in %s: %w", b.path, connector.Reason(err))
	}
	b.pins = map[string]pin{}
	for name, p := range read.Tools {
		p.Name = name
		b.pins[name] = p
	}
	return nil
}

// saveLocked makes the file, whole or not at all.
func (b *book) saveLocked(pins map[string]pin) error {
	text, err := json.MarshalIndent(bookFile{Note: bookNote, Tools: pins}, "", "  ")
	if err != nil {
		return fmt.Errorf("write the pins: %w", err)
	}
	if b.fault = writeWhole(b.path, append(text, '\n')); b.fault != nil {
		b.fault = fmt.Errorf("write the pins to %s: %w", b.path, connector.Reason(b.fault))
		return b.fault
	}
	b.pins = pins
	return nil
}

// writeWhole replaces a file. A crash leaves the old one or the new one.
func writeWhole(path string, text []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".pins-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error is the one to tell
		}
	}()
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// trustFirst pins all tools if nothing was ever pinned, and reports whether it
// did.
func (b *book) trustFirst(tools map[string]definition) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.fixed) > 0 || len(tools) == 0 {
		return false, nil
	}
	// Another process may have met the server first.
	if err := b.loadLocked(); err != nil || len(b.pins) > 0 {
		b.fault = err
		return false, err
	}
	pins := map[string]pin{}
	for name, d := range tools {
		pins[name] = pin{Hash: d.hash(), definition: d}
	}
	if err := b.saveLocked(pins); err != nil {
		return false, err
	}
	return true, nil
}

// remember keeps what is known about tools whose pins are in the definition of
// the connection, for the time when the server is down. It changes no pin.
func (b *book) remember(tools map[string]definition) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	pins := maps.Clone(b.pins)
	news := false
	for name, hash := range b.fixed {
		d, known := tools[name]
		if known && d.hash() == hash && pins[name].Hash != hash {
			pins[name] = pin{Hash: hash, definition: d}
			news = true
		}
	}
	if !news {
		return nil
	}
	return b.saveLocked(pins)
}

// set pins a tool as it is, or drops its pin if it is gone.
func (b *book) set(name string, d definition, gone bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.loadLocked(); err != nil {
		return err
	}
	pins := maps.Clone(b.pins)
	if gone {
		delete(pins, name)
	} else {
		pins[name] = pin{Hash: d.hash(), definition: d}
	}
	return b.saveLocked(pins)
}

// compare tells how a tool compares to its pin. hash is that of the pin, and
// change says what changed; both can be empty.
func (b *book) compare(d definition) (state connector.PinState, hash, change string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pinned, known := b.pins[d.Name]
	hash = pinned.Hash
	if fixed, isFixed := b.fixed[d.Name]; isFixed {
		known = pinned.Hash == fixed // else the record is about something else
		hash = fixed
	}
	switch {
	case hash == "":
		return connector.PinMissing, "", ""
	case hash == d.hash():
		return connector.PinHolds, hash, ""
	case !known:
		return connector.PinChanged, hash, "its earlier version was not kept"
	}
	return connector.PinChanged, hash, describeChange(pinned.definition, d)
}

// known is what is pinned about a tool.
func (b *book) known(name string) (definition, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.pins[name]
	return p.definition, ok
}

// hash is that of the pin of a tool, or empty.
func (b *book) hash(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if fixed, isFixed := b.fixed[name]; isFixed {
		return fixed
	}
	return b.pins[name].Hash
}

// names are those of the tools that are pinned, sorted.
func (b *book) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.pins))
}

// isFixed reports whether the pin of a tool is in the definition of the
// connection.
func (b *book) isFixed(name string) bool { return b.fixed[name] != "" }

// writeFault is why pins could not be kept, or nil.
func (b *book) writeFault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fault
}
