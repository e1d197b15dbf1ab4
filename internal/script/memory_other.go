//go:build !linux

package script

// meter does not tell how large this process is or was.
type meter struct{}

func openMeter() meter { return meter{} }

func (meter) peak() int64 { return 0 }
func (meter) now() int64  { return 0 }
