package cli

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
)

// templates are the definitions that new begins with; NAME stands for the name.
//
//go:embed template
var templates embed.FS

// template is a definition that new can write.
type template struct {
	kind   string
	suffix string // of the file
	then   string // what to do with it next; FILE stands for it
}

func definitionTemplates() []template {
	return []template{
		{string(pawl.KindWorkflow), ".workflow.ts", "pawl test FILE --event 'NAME.asked={\"text\": \"hello\"}'"},
		{string(pawl.KindSource), ".source.yaml", "pawl test FILE"},
		{string(pawl.KindSchedule), ".schedule.yaml", "pawl validate FILE"},
	}
}

func newNewCommand(p *Process) *cobra.Command {
	var names []string
	for _, t := range definitionTemplates() {
		names = append(names, t.kind)
	}
	cmd := &cobra.Command{
		Use: "new KIND NAME", Short: "Create a definition from a template",
		Long: "Writes a file with a small working definition and comments that explain what you can change.\n" +
			"No server is needed." +
			"\n\nKinds: " + strings.Join(names, ", "),
		Example: "  pawl new workflow greetings\n" +
			"  pawl new source prices --dir definitions\n" +
			"  pawl new schedule morning-report",
		GroupID: groupStart, Args: takes(2, 2), ValidArgsFunction: cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp),
	}
	dir := cmd.Flags().String("dir", ".", "write the file into `FOLDER`")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		i := slices.IndexFunc(definitionTemplates(), func(t template) bool { return args[0] == t.kind || args[0] == t.kind+"s" })
		if i < 0 {
			return usageError(strings.TrimSpace(pawl.Suggest(args[0], names, "")+" Kinds: "+strings.Join(names, ", ")+"."), "there is no template for the kind %q", args[0])
		}
		return definitionTemplates()[i].write(p, *dir, args[1])
	}
	return cmd
}

// write makes the file, which must not be there.
func (t template) write(p *Process, dir, name string) error {
	if !regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(name) {
		return usageError("Use small letters, digits and dashes, such as morning-report.", "%q is not a valid name for a %s", name, t.kind)
	}
	text, err := templates.ReadFile("template/" + t.kind + t.suffix[strings.LastIndexByte(t.suffix, '.'):])
	if err != nil {
		return fmt.Errorf("read template: %w", err)
	}
	shown := filepath.Join(dir, name+t.suffix)
	if err := os.MkdirAll(p.path(dir), 0o777); err != nil { //nolint:gosec // a folder of definitions, not of secrets
		return fmt.Errorf("write %s: %w", shown, err)
	}
	file, err := os.OpenFile(p.path(shown), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // what git keeps, too
	if errors.Is(err, os.ErrExist) {
		return &pawl.Error{Code: pawl.CodeConflict, Msg: shown + " is there already", Hint: "Choose another name, or remove it."}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", shown, err)
	}
	_, err = file.WriteString(strings.ReplaceAll(string(text), "NAME", name))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", shown, err)
	}
	p.say("Try it:       %s", strings.NewReplacer("FILE", shown, "NAME", name).Replace(t.then))
	p.say("Put it into a running server:  pawl apply -f %s", shown)
	_, err = fmt.Fprintln(p.Stdout, shown)
	return err
}
