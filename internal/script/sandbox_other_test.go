//go:build !linux

package script

// Elsewhere there is nothing to probe: workers are not confined, and say so.
const probeWord = "confined-probe"

func probeMain(string) {}
