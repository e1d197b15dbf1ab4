package api

import (
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest/migrated"
	"github.com/pawlrun/pawl/internal/script"
)

func TestMain(m *testing.M) {
	script.WorkerMain() // the tests' own program is what their pool starts
	migrated.Main(m)
}
