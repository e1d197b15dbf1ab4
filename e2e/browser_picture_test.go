package e2e

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// picturesIn names the folder that the pictures of the documentation are
// written to, such as docs/images; without it none are taken. A relative one is
// below the root of the repository.
const picturesIn = "PAWL_PICTURES"

// takePictures makes the pictures of the documentation from the pages as they
// are:
//
//	PAWL_PICTURES=docs/images go test -run TestPagesInABrowser ./e2e
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
			{"overview", "/", 1000}, {"workflow", "/workflows/orders", 860}, {"source", "/sources/prices", 820},
			{"schedule", "/schedules/" + g.reports, 860}, {"timeline", "/timeline?span=6m", 680},
		} {
			b.size(1180, p.height, 1)
			b.open(p.path)
			b.until(`[...document.querySelectorAll("[data-chart]")].every(e => e.querySelector("canvas"))`)
			picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, p.name+"-"+scheme+".png"), smaller(t, picture), 0o644); err != nil { //nolint:gosec // pictures are for everybody
				t.Fatal(err)
			}
		}
	}
}

// smaller is a picture with its 256 most frequent colours, which is all that a
// page has but for the edges of letters.
func smaller(t *testing.T, picture []byte) []byte {
	t.Helper()
	whole, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[color.Color]int{}
	size := whole.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			counts[whole.At(x, y)]++
		}
	}
	palette := color.Palette(slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] }))
	out := image.NewPaletted(size, palette[:min(len(palette), 256)])
	draw.Draw(out, size, whole, size.Min, draw.Src)
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// live lets two minutes pass with something in them, for pictures that show
// work.
func (g *stage) live() {
	g.t.Helper()
	g.must("PUT", "/api/v1/sources/stock", map[string]any{
		"url": g.elsewhere + "/stock", "table": "stock", "schedule": "hourly", "description": "What the warehouse has",
		"response": map[string]any{"fields": []any{map[string]any{"source": "item", "target": "item"}}}, "write": map[string]any{"key": []any{"item"}},
	}, nil)
	g.must("POST", "/api/v1/schedules", map[string]any{"name": "sync", "graphId": "http:sync", "input": map[string]any{}, "cron": "* * * * *", "timezone": "UTC"}, nil)
	g.approveAll()
	for i, name := range []string{"Ada", "Grace", "Edsger", "Barbara", "Tony", "Radia", "Ken", "Dennis", "Frances", "John", "Margaret", "Leslie"} {
		g.happens("orders", "order-"+name, "Order of "+name, map[string]any{"item": []string{"ratchet wheel", "brass pawl", "spring"}[i%3], "quantity": i%4 + 1, "customer": name})
		g.must("POST", "/api/v1/sources/prices/run", nil, nil)
		g.pause(time.Duration(3+i%3*5) * time.Second)
		if name != "Leslie" {
			g.approveAll()
		}
	}
	g.happens("shipping", "parcel-1", "Parcel for Ada", map[string]any{"item": "brass pawl", "to": "Ada"})
	g.pause(3 * time.Second)
}

// approveAll approves whatever waits.
func (g *stage) approveAll() {
	g.t.Helper()
	var list struct {
		Items []struct {
			RunID string `json:"runId"`
		} `json:"items"`
	}
	g.must("GET", "/api/v1/approvals", nil, &list)
	for _, one := range list.Items {
		g.must("POST", "/api/v1/runs/"+one.RunID+"/approve", nil, nil)
	}
}
