package pawl_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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

// The alert rules mean what their tests say, judged by the program that is made for
// it.
func TestAlertRulesFire(t *testing.T) {
	promtool := "promtool"
	if _, err := exec.LookPath(promtool); err != nil {
		if promtool, err = filepath.Abs("bin/tools/promtool"); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "deploy/alerts.yaml"}, {"test", "rules", "deploy/alerts_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v (scripts/ensure-test-tools.sh installs it)\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// What alerts and the dashboard ask for is in the guide, whose metrics another test
// finds in a running server.
func TestAlertsAndDashboardAskForWhatThereIs(t *testing.T) {
	guide := readText(t, "docs/operations.md")
	dashboard := readText(t, "deploy/grafana.json")
	if !json.Valid([]byte(dashboard)) {
		t.Error("the dashboard is not JSON")
	}
	for name, text := range map[string]string{"deploy/alerts.yaml": readText(t, "deploy/alerts.yaml"), "deploy/grafana.json": dashboard} {
		found := regexp.MustCompile(`pawl_[a-z_]+[a-z]`).FindAllString(text, -1)
		if len(found) < 10 {
			t.Errorf("%s asks only for %v", name, found)
		}
		for _, metric := range found {
			if metric = strings.TrimSuffix(metric, "_bucket"); !strings.Contains(guide, "`"+metric+"{") && !strings.Contains(guide, "`"+metric+"`") {
				t.Errorf("%s asks for %s, which docs/operations.md does not have", name, metric)
			}
		}
	}
}
