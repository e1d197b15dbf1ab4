package script

import "testing"

// A worker whose script took much memory is not used again, also when the script let
// go of it before its end; one whose scripts took little is.
func TestWorkersThatBecameLargeAreReplaced(t *testing.T) {
	p := newTestPool(t, Config{Workers: 1})
	_ = valueOf(t, p, "return 1", nil)
	first := idlePID(t, p)
	_ = valueOf(t, p, "return new Uint8Array(16 << 20).fill(1).length", nil)
	if pid := idlePID(t, p); pid != first {
		t.Errorf("a worker that held 16 MiB was replaced")
	}
	_ = valueOf(t, p, "let kept = new Uint8Array(110 << 20).fill(1); kept = null; return 1", nil)
	if idle, _, _ := p.state(); idle != 0 {
		t.Errorf("a worker that held 110 MiB is kept")
	}
	_ = valueOf(t, p, "return 1", nil)
	if pid := idlePID(t, p); pid == first {
		t.Errorf("a worker that held 110 MiB served another phase")
	}
}
