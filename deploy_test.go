package pawl_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The unit holds what docs/security.md says of it: no core files, in which keys
// would be, no new privileges, and nothing to write but its own folder.
func TestUnitIsConfined(t *testing.T) {
	unit := readText(t, "deploy/pawl.service")
	for _, line := range []string{"LimitCORE=0", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "UMask=0077"} {
		if !strings.Contains("\n"+unit, "\n"+line+"\n") {
			t.Errorf("the unit lacks %s", line)
		}
	}
}

// What is built in a container is built by the toolchain of go.mod, to the patch.
func TestContainerIsBuiltByTheToolchain(t *testing.T) {
	toolchain := regexp.MustCompile(`(?m)^toolchain go(\d+\.\d+\.\d+)$`).FindStringSubmatch(readText(t, "go.mod"))
	if toolchain == nil {
		t.Fatal("go.mod names no toolchain")
	}
	if from := "\nFROM golang:" + toolchain[1]; !strings.Contains(readText(t, "deploy/Dockerfile"), from) {
		t.Errorf("the Dockerfile has no %q", from)
	}
}
