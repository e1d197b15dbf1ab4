package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// picturesIn names the folder that the pictures of the documentation are
// written to, such as docs/images; without it none are taken. A relative one is
// below the root of the repository.
const picturesIn = "PAWL_PICTURES"

// takePictures makes the pictures of the documentation from the pages as they
// are.
func takePictures(t *testing.T, g *stage, b *tab) {
	dir := os.Getenv(picturesIn)
	if dir == "" {
		return
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", dir)
	}
	b.t, g.t = t, t
	g.live()
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, p := range []struct {
			name, path string
			height     int64
		}{
			{"overview", "/", 720}, {"workflow", "/workflows/orders", 860}, {"source", "/sources/prices", 880},
			{"schedule", "/schedules/" + g.reports, 860}, {"timeline", "/timeline", 560},
		} {
			b.size(1180, p.height, 1)
			b.open(p.path)
			b.until(`[...document.querySelectorAll("[data-chart]")].every(e => e.querySelector("canvas"))`)
			picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, p.name+"-"+scheme+".png"), picture, 0o644); err != nil { //nolint:gosec // pictures are for everybody
				t.Fatal(err)
			}
		}
	}
}

// live lets a little time pass with something in it, for pictures that show
// work.
func (g *stage) live() {
	g.t.Helper()
	people := []string{"Ada", "Grace", "Edsger", "Barbara", "Tony", "Radia"}
	for i, name := range people {
		g.happens("shipping", "parcel-"+name, "Parcel for "+name, map[string]any{"item": "pawl", "to": name})
		g.must("POST", "/api/v1/sources/prices/run", nil, nil)
		select {
		case <-time.After(time.Duration(i+2) * time.Second):
		case <-g.t.Context().Done():
		}
	}
}
