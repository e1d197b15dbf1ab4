package relay

import (
	"testing"

	"github.com/pawlrun/pawl/internal/pgtest/migrated"
)

func TestMain(m *testing.M) { migrated.Main(m) }
