//go:build !race

package fetch

const largeAnswer = 200 << 20
