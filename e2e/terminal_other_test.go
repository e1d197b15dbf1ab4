//go:build !linux

package e2e

import (
	"os"
	"testing"
)

// openTerminal makes no terminal here: a token signs in instead of the link.
func openTerminal(*testing.T) (reader, terminal *os.File) { return nil, nil }
