package runner

import (
	"context"

	"github.com/pawlrun/pawl/internal/outbound"
)

// WithPermit returns a context whose calls leave only while the permit holds; see
// outbound.WithPermit.
func WithPermit(ctx context.Context, permit func() error) context.Context {
	return outbound.WithPermit(ctx, permit)
}
