package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

// BenchmarkCreateJob measures one accepted job from request to durable answer,
// with 32 callers at a time, without the network.
func BenchmarkCreateJob(b *testing.B) {
	for name, url := range map[string]string{"sqlite": "sqlite:" + b.TempDir() + "/pawl.db", "postgres": pgtest.URL(b)} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, url)
			b.SetParallelism(16)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					req := httptest.NewRequestWithContext(b.Context(), "POST", "/api/v1/jobs", strings.NewReader(`{"task":"echo","delay":"1h","payload":{"order":4711}}`))
					req.Header.Set("Authorization", "Bearer "+r.admin)
					w := httptest.NewRecorder()
					r.api.ServeHTTP(w, req)
					if w.Code != http.StatusCreated {
						b.Errorf("status %d: %s", w.Code, w.Body)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
