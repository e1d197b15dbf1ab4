package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/visible"
)

// The formats of -o.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// addOutputFlag gives a command -o with some formats; the first is the default.
func addOutputFlag(cmd *cobra.Command, formats ...string) *outputFlag {
	f := &outputFlag{format: formats[0], formats: formats}
	cmd.Flags().VarP(f, "output", "o", "write `FORMAT`: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return f
}

type outputFlag struct {
	format  string
	formats []string
}

func (f *outputFlag) String() string { return f.format }
func (f *outputFlag) Type() string   { return "format" }

func (f *outputFlag) Set(text string) error {
	if !slices.Contains(f.formats, text) {
		return fmt.Errorf("use %s", strings.Join(f.formats, ", "))
	}
	f.format = text
	return nil
}

// machine reports whether the output is for programs.
func (f *outputFlag) machine() bool { return f.format == formatJSON || f.format == formatYAML }

// writeMachine writes JSON as it came from the server, or as YAML. Fields that
// this program does not know are kept.
func writeMachine(w io.Writer, format string, raw json.RawMessage) error {
	if format == formatYAML {
		text, err := toYAML(raw)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "  "); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := io.WriteString(w, visible.Text(pretty.String())+"\n") // the same values: these are the escapes of JSON
	return err
}

// listOf is a list in the shape in which the API answers it.
func listOf(items []json.RawMessage) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{"items": append([]json.RawMessage{}, items...)}) // raw JSON and a map always encode
	return raw
}
