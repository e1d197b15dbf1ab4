package schedule

import (
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }
