package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set when the program is built.
var version = "dev"

// build says what this program was made from.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildVersion() build {
	b := build{Version: version, Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = " (modified)"
		}
	}
	b.Commit += dirty
	return b
}

func newVersionCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Tell the version of this program", GroupID: groupTools, Args: takes(0, 0)}
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
