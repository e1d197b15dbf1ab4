package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	pawl "github.com/pawlrun/pawl"
)

// update writes the reference and the schemas instead of comparing it: make docs.
var update = flag.Bool("update", false, "write docs/reference")

const referenceFolder = "../../docs/reference"

// The reference is made of what it describes, so it cannot be out of date.
func TestReferenceIsUpToDate(t *testing.T) {
	pages := map[string]string{
		"commands.md": commandReference(t), "settings.md": settingReference(), "definitions.md": definitionReference(t), "api.md": apiReference(t),
	}
	for name, text := range pages {
		pages[name] = "<!-- Made by make docs; changes here are lost. -->\n\n" + text
	}
	for kind, text := range definitionSchemas() {
		pages["../schemas/"+kind+".schema.json"] = string(text)
	}
	for name, text := range pages {
		path := filepath.Join(referenceFolder, name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		there, err := os.ReadFile(path)
		if err != nil || string(there) != text {
			t.Errorf("docs/reference/%s is out of date (%v): make docs writes it anew", name, err)
		}
	}
}

// page is a page of Markdown that grows.
type page struct{ strings.Builder }

func (p *page) say(format string, args ...any) { p.WriteString(fmt.Sprintf(format+"\n", args...)) }

// row adds a row to a table; what would end a cell is escaped.
func (p *page) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.ReplaceAll(c, "\n", " "), "|", `\|`)
	}
	p.say("| %s |", strings.Join(cells, " | "))
}

func (p *page) table(titles ...string) {
	p.row(titles...)
	p.say("|%s", strings.Repeat("---|", len(titles)))
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func commandReference(t *testing.T) string {
	process, _, _ := call{}.process(t)
	root, p := newRoot(process), &page{}
	p.say("# Commands\n\n`pawl COMMAND --help` prints the same.\n")
	for _, group := range root.Groups() {
		p.say("## %s\n", strings.TrimSuffix(group.Title, ":"))
		p.table("Command", "")
		for _, c := range root.Commands() {
			if c.GroupID == group.ID && c.IsAvailableCommand() {
				p.row(fmt.Sprintf("[`%s`](#%s)", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-")), c.Short)
			}
		}
		p.say("")
	}
	p.say("## Exit codes\n")
	p.table("Code", "Meaning")
	for exit, meaning := range []string{
		pawl.ExitDone: "success", pawl.ExitFailed: "failure", pawl.ExitUsage: "usage error", pawl.ExitNotFound: "not found",
		pawl.ExitRefused: "refused in the current state; the message has the code", pawl.ExitNotAllowed: "not allowed: no token, or one without the scope", pawl.ExitUnreachable: "server unreachable",
	} {
		p.row(fmt.Sprint(exit), meaning)
	}
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		describeCommand(p, c)
	}
	return p.String()
}

func describeCommand(p *page, c *cobra.Command) {
	if !c.IsAvailableCommand() {
		return
	}
	p.say("\n## %s\n\n%s.\n\n```\n%s\n```", c.CommandPath(), c.Short, c.UseLine())
	if c.Long != "" {
		p.say("\n%s", strings.ReplaceAll(c.Long, "*", `\*`))
	}
	if c.Example != "" {
		p.say("\n```sh\n%s\n```", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	describeFlags(p, c)
	for _, below := range c.Commands() {
		describeCommand(p, below)
	}
}

// describeFlags lists the flags that are the command's own; those of settings
// are told where settings are.
func describeFlags(p *page, c *cobra.Command) {
	shared := map[string]bool{"help": true}
	if c.Flags().Lookup("config") != nil { // else a flag that is called like a setting is the command's own
		shared["config"] = true
		for _, s := range settings() {
			shared[s.flag] = true
		}
	}
	rows, others := &page{}, false
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if shared[f.Name] {
			others = others || f.Name != "help"
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		written := "--" + f.Name
		if f.Shorthand != "" {
			written = "-" + f.Shorthand + ", " + written
		}
		fallback := strings.Trim(f.DefValue, "[]")
		if fallback == "false" {
			fallback = ""
		}
		rows.row(code(strings.TrimSpace(written+" "+name)), usage, code(fallback))
	})
	if rows.Len() > 0 {
		p.say("")
		p.table("Flag", "Meaning", "Default")
		p.WriteString(rows.String())
	}
	if others {
		p.say("\nIt also takes the flags of its [settings](settings.md).")
	}
}

func settingReference() string {
	p := &page{}
	p.say("# Settings\n\nFlags take precedence over environment variables, those over the file, and the file over the\ndefaults.\n")
	p.say("The file is `%s` in the folder where the command runs, or the one that `--config` or\n`PAWL_CONFIG` names. It is YAML with the keys below; an unknown key is an error.\n", defaultConfigFile)
	p.say("Times are written `300s`, `1h30m` or `1d`, sizes `1MiB` or `500kB`. Lists are repeated\nflags, lists in the file, and in the environment comma-separated, or for paths separated as in `PATH`.")
	defaults := defaultValues()
	for _, part := range []struct {
		title string
		list  []setting
	}{{"Server", serverSettings()}, {"Commands that call a server", clientSettings()}} {
		p.say("\n## %s\n", part.title)
		p.table("Flag", "Environment", "In the file", "Default", "Meaning")
		for _, s := range part.list {
			name, usage := pflag.UnquoteUsage(&pflag.Flag{Usage: s.usage, Value: &settingFlag{isSwitch: isSwitch(s.at(&defaults))}})
			p.row(code(strings.TrimSpace("--"+s.flag+" "+name)), code(s.env), code(s.key), code(formatValue(s.at(&defaults))), usage)
		}
	}
	p.say("\nCommands find the server where `--server` says, else where `addr` says, and take the token that\nthey are given, else the one in the data folder if the server is on this machine.")
	p.say("\nFor the contents of the data folder see [operations.md](../operations.md).")
	return p.String()
}
