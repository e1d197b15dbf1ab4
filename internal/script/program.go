package script

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
)

// Program is a compiled script. It can be made anew from its source at any
// time, and then has the same Version.
type Program struct {
	// Version identifies what runs: a hash of the source and of the tools that
	// translate and run it.
	Version  string
	File     string // the name in messages
	Warnings []Diagnostic

	// packed is the JavaScript and, from mapAt on, its source map, compressed: a
	// server has thousands of programs in memory, and needs the text of one only
	// when a worker does not have it yet, and the map only when it fails.
	packed      []byte
	mapAt, size int

	once   sync.Once
	parsed *sourceMap
}

// NewProgram makes a program of what was compiled. Its version is up to the caller.
func NewProgram(file, javascript string, sourceMap []byte) *Program {
	p := &Program{File: file, mapAt: len(javascript), size: len(javascript) + len(sourceMap)}
	var packed bytes.Buffer
	w := packers.Get().(*flate.Writer)
	w.Reset(&packed)
	_, _ = io.WriteString(w, javascript) // memory takes whatever is written
	_, _ = w.Write(sourceMap)
	_ = w.Close()
	packers.Put(w)
	p.packed = bytes.Clone(packed.Bytes())
	return p
}

// packers are used again, because one takes more memory than most programs.
var packers = sync.Pool{New: func() any { //nolint:gochecknoglobals // has no state but memory
	w, _ := flate.NewWriter(nil, flate.DefaultCompression) // the level is valid
	return w
}}

// readers are used again for the same reason.
var readers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }} //nolint:gochecknoglobals // has no state but memory

// JavaScript is what runs.
func (p *Program) JavaScript() string { return string(p.unpack(0, p.mapAt)) }

// SourceMap tells where in the source a place of the JavaScript comes from.
func (p *Program) SourceMap() []byte { return p.unpack(p.mapAt, p.size) }

func (p *Program) unpack(from, to int) []byte {
	text := make([]byte, to)
	r := readers.Get().(io.Reader)
	defer readers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(p.packed), nil); err != nil {
		panic(fmt.Sprintf("a reader of programs cannot be used again: %v", err))
	}
	if _, err := io.ReadFull(r, text); err != nil {
		panic(fmt.Sprintf("a program that was packed by this process cannot be read: %v", err))
	}
	return text[from:]
}

// Size is about how much memory the program takes: its text, and what the parsed
// map adds.
func (p *Program) Size() int { return 512 + len(p.packed) + 4*(p.size-p.mapAt) }

// toolchain is part of every Version. A test holds it and go.mod together; the
// QuickJS in it changes with quickVersion.
const toolchain = "pawl/1 esbuild/0.28.2 quickjs/0.25.0"

// version returns the identity of a source. The kind of file is part of it,
// because it decides how the text is read; its name is not.
func version(file, source string) string {
	sum := sha256.New()
	sum.Write(fmt.Appendf(nil, "%s\n%v\n", toolchain, isJavaScript(file)))
	sum.Write([]byte(source))
	return hex.EncodeToString(sum.Sum(nil))
}

// places returns the parsed source map, or nil when there is none that can be
// read: places are then not known.
func (p *Program) places() *sourceMap {
	p.once.Do(func() {
		if m, err := parseSourceMap(p.SourceMap()); err == nil {
			p.parsed = m
		}
	})
	return p.parsed
}
