package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// unreleased is the version of a program whose build did not tell one.
const unreleased = "dev"

// version and commit are set when the program is built by the Makefile or the
// Dockerfile.
var (
	version = unreleased
	commit  = "" //nolint:gochecknoglobals // the linker sets it
)

// build says what this program was made from.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildVersion() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildFrom(version, commit, info)
}

// buildFrom tells a build by what the linker was told, and else by what Go wrote
// down: the version of a module that was installed by its name, and the commit
// of a working copy.
func buildFrom(version, commit string, info *debug.BuildInfo) build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if told := info.Main.Version; version == unreleased && told != "" && told != "(devel)" {
		b.Version = told
	}
	written := map[string]string{}
	for _, s := range info.Settings {
		written[s.Key] = s.Value
	}
	b.Date = written["vcs.time"]
	if b.Commit == "" {
		b.Commit = cmp.Or(written["vcs.revision"], "unknown")
		if written["vcs.modified"] == "true" {
			b.Commit += " (modified)"
		}
	}
	return b
}

func newVersionCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Show the version", Example: "  pawl version\n  pawl version -o json", GroupID: groupTools, Args: takes(0, 0)}
	out := addOutputFlag(cmd, formatTable, formatJSON)
	cmd.RunE = func(*cobra.Command, []string) error {
		b := buildVersion()
		if out.machine() {
			raw, err := json.Marshal(b)
			if err != nil {
				return fmt.Errorf("write version: %w", err)
			}
			return writeMachine(p.Stdout, out.format, raw)
		}
		_, err := fmt.Fprintf(p.Stdout, "pawl %s\ncommit %s\n%s %s\n", b.Version, b.Commit, b.Go, b.Platform)
		return err
	}
	return cmd
}
