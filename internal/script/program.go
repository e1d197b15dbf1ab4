package script

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
)

// Program is a compiled script. It can be made anew from its source at any
// time, and then has the same Version.
type Program struct {
	// Version identifies what runs: a hash of the source and of the tools that
	// translate and run it.
	Version    string
	File       string // the name in messages
	JavaScript string
	SourceMap  []byte
	Warnings   []Diagnostic

	once   sync.Once
	parsed *sourceMap
}

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
		if m, err := parseSourceMap(p.SourceMap); err == nil {
			p.parsed = m
		}
	})
	return p.parsed
}
