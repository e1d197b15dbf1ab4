//go:build race

package fetch

// The race detector makes the large answer several times as slow.
const largeAnswer = 50 << 20
