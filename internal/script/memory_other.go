//go:build !linux

package script

// meter does not tell how large this process was.
type meter struct{}

func openMeter() meter { return meter{} }

func (meter) peak() int64 { return 0 }
