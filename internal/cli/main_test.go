package cli

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pawlrun/pawl/internal/script"
)

func TestMain(m *testing.M) {
	script.WorkerMain() // the tests' own program is what their pools start
	goleak.VerifyTestMain(m)
}
