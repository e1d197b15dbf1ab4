package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

// unreleased is the version of a program whose build did not tell one.
const unreleased = "dev"

// unknown is what a program says of itself that its build did not tell.
const unknown = "unknown"

// version, commit and date are set when the program is built by the Makefile or
// the Dockerfile.
var (
	version = unreleased
	commit  = "" //nolint:gochecknoglobals // the linker sets it
	date    = "" //nolint:gochecknoglobals // the linker sets it
)

// build says what this program was made from.
type build struct {
	Version  string             `json:"version"`
	Commit   string             `json:"commit"`
	Date     string             `json:"date"` // of the commit
	Schema   client.SchemaRange `json:"schema"`
	Go       string             `json:"go"`
	Platform string             `json:"platform"`
}

func buildVersion() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildFrom(version, commit, date, info)
}

// pseudoVersion is what Go calls a commit that has no tag: after the version
// before it come its time, in UTC, and the beginning of its hash.
var pseudoVersion = regexp.MustCompile(`^v.*[-.](\d{14})-([0-9a-f]{12})(\+.*)?$`)

// buildFrom tells a build by what the linker was told, and else by what Go wrote
// down: the commit of a working copy, and the version of a module that was
// installed by its name, which can have the commit in it.
func buildFrom(version, commit, date string, info *debug.BuildInfo) build {
	b := build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if told := info.Main.Version; version == unreleased && told != "" && told != "(devel)" {
		b.Version = told
	}
	written := map[string]string{}
	for _, s := range info.Settings {
		written[s.Key] = s.Value
	}
	b.Schema.Min, b.Schema.Max = store.Schema()
	named := []string{"", "", ""}
	if found := pseudoVersion.FindStringSubmatch(info.Main.Version); found != nil {
		named = found
	}
	b.Date = cmp.Or(b.Date, written["vcs.time"], timeOfVersion(named[1]), unknown)
	if b.Commit == "" {
		b.Commit = cmp.Or(written["vcs.revision"], named[2], unknown)
		if written["vcs.modified"] == "true" {
			b.Commit += " (modified)"
		}
	}
	return b
}

// timeOfVersion is the time that is part of a version; empty if it is none.
func timeOfVersion(digits string) string {
	at, err := time.Parse("20060102150405", digits)
	if err != nil {
		return ""
	}
	return at.Format(time.RFC3339)
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
		_, err := fmt.Fprintf(p.Stdout, "pawl %s\ncommit %s of %s\nschema %s\n%s %s\n", b.Version, b.Commit, b.Date, schemaWords(b.Schema), b.Go, b.Platform)
		return err
	}
	return cmd
}
