package web

import (
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
	"github.com/pawlrun/pawl/internal/script"
)

func TestMain(m *testing.M) {
	script.WorkerMain() // the tests' own program is what their pool starts
	pgtest.Main(m)
}
