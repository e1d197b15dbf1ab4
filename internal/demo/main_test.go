package demo

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pawlrun/pawl/internal/script"
)

func TestMain(m *testing.M) {
	script.WorkerMain() // the demo runs scripts
	goleak.VerifyTestMain(m)
}
