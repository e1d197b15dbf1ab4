package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/moving"
	"github.com/pawlrun/pawl/internal/when"
)

func newImportCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import", Short: "Turn crontabs, systemd timers and CronJobs into definitions",
		Long: "Writes definitions of schedules to standard output, and to standard error what differs:\n" +
			"the next times of each line, and what cannot be carried over. No server is needed. Exits\n" +
			"with 1 if a line could not be carried over.",
		Example: "  crontab -l | pawl import crontab - > jobs.yaml\n" +
			"  pawl import systemd /etc/systemd/system/backup.timer",
		GroupID: groupTools, Args: takes(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return usageError("Write pawl import crontab, pawl import systemd or pawl import kubernetes.", "%s needs to know what to read", cmd.CommandPath())
	}
	cmd.AddCommand(newImportCrontab(p), newImportSystemd(p), newImportKubernetes(p))
	return cmd
}

func newImportCrontab(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "crontab FILE|-", Short: "Turn a crontab into definitions",
		Long: "Reads a crontab, of a user or (with --system) one such as /etc/crontab, whose lines name a\n" +
			"user. Commands run with the shell of the crontab, in the home directory.",
		Example: "  crontab -l | pawl import crontab - > jobs.yaml\n" +
			"  pawl import crontab --system /etc/crontab",
		Args: takes(1, 1),
	}
	system := cmd.Flags().Bool("system", false, "each line names a user after the time")
	zone := addImportZone(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		text, err := readImport(p, args[0])
		if err != nil {
			return err
		}
		o, err := importOptions(p, *zone)
		if err != nil {
			return err
		}
		o.System = *system
		return writeImport(p, moving.Crontab(text, o), o)
	}
	return cmd
}

func newImportSystemd(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "systemd UNIT...", Short: "Turn systemd timers into definitions",
		Long: "Reads files of timers and of the services that they start. A service that is not named\n" +
			"is looked for beside its timer.",
		Example: "  pawl import systemd /etc/systemd/system/backup.timer",
		Args:    takes(1, -1),
	}
	zone := addImportZone(cmd)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var units []moving.Unit
		for _, path := range args {
			text, err := readImport(p, path)
			if err != nil {
				return err
			}
			units = append(units, moving.Unit{Name: filepath.Base(path), Text: text})
			service := strings.TrimSuffix(path, ".timer") + ".service"
			if !strings.HasSuffix(path, ".timer") || slices.Contains(args, service) {
				continue
			}
			if text, err := readImport(p, service); err == nil {
				units = append(units, moving.Unit{Name: filepath.Base(service), Text: text})
			}
		}
		o, err := importOptions(p, *zone)
		if err != nil {
			return err
		}
		return writeImport(p, moving.Systemd(units, o), o)
	}
	return cmd
}

func newImportKubernetes(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use: "kubernetes FILE|-", Short: "Turn Kubernetes CronJobs into definitions",
		Long: "Reads the CronJobs of a manifest. The container of a job becomes a command of docker run.",
		Example: "  pawl import kubernetes cronjob.yaml\n" +
			"  kubectl get cronjob backup -o yaml | pawl import kubernetes -",
		Args: takes(1, 1),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		text, err := readImport(p, args[0])
		if err != nil {
			return err
		}
		o := moving.Options{Now: time.Now()}
		return writeImport(p, moving.Kubernetes(text, o), o)
	}
	return cmd
}

func addImportZone(cmd *cobra.Command) *string {
	return cmd.Flags().String("timezone", "", "the times are those of `ZONE` (default: that of this machine)")
}

// mostImport bounds what is read.
const mostImport = 16 << 20

func readImport(p *Process, path string) (string, error) {
	in := p.Stdin
	if path != stdinPath {
		file, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			return "", &pawl.Error{Code: pawl.CodeNotFound, Msg: "there is no " + path}
		}
		if err != nil {
			return "", &pawl.Error{Code: pawl.CodeInvalid, Msg: path + " cannot be read: " + reason(err)}
		}
		defer file.Close() //nolint:errcheck // it is only read
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, mostImport+1))
	switch {
	case err != nil:
		return "", &pawl.Error{Code: pawl.CodeInvalid, Msg: path + " cannot be read: " + reason(err)}
	case len(text) > mostImport:
		return "", &pawl.Error{Code: pawl.CodeInvalid, Msg: fmt.Sprintf("%s has more than %d bytes", path, mostImport)}
	}
	return string(text), nil
}

func importOptions(p *Process, zone string) (moving.Options, error) {
	if zone == "" {
		zone = machineZone(p)
	}
	if _, err := when.LoadZone(zone); err != nil {
		return moving.Options{}, err
	}
	return moving.Options{Zone: zone, Home: p.Getenv("HOME"), Now: time.Now()}, nil
}

// machineZone is the zone that the clock of this machine shows, UTC if nobody
// says.
func machineZone(p *Process) string {
	names := []string{strings.TrimPrefix(p.Getenv("TZ"), ":")}
	if link, err := os.Readlink("/etc/localtime"); err == nil {
		if _, name, ok := strings.Cut(link, "zoneinfo/"); ok {
			names = append(names, name)
		}
	}
	if text, err := os.ReadFile("/etc/timezone"); err == nil {
		names = append(names, strings.TrimSpace(string(text)))
	}
	for _, name := range names {
		if _, err := when.LoadZone(name); err == nil && name != "" {
			return name
		}
	}
	return "UTC"
}

// writeImport writes the definitions, and what one should know about them.
func writeImport(p *Process, r moving.Result, o moving.Options) error {
	if _, err := io.WriteString(p.Stdout, r.YAML()); err != nil {
		return err
	}
	for _, note := range r.Notes {
		p.say("%s", note)
	}
	for _, s := range r.Schedules {
		next := instants(s.Next(o.Now, 3))
		p.say("%s: %s runs next at %s%s", s.From, s.Name, strings.Join(next, ", "), besideCron(s, o, next))
		for _, note := range s.Notes {
			p.say("  %s", note)
		}
	}
	for _, lost := range r.Lost {
		p.say("not carried over: %s", lost)
	}
	p.say("%s carried over, %d not.", plural(len(r.Schedules), "schedule"), len(r.Lost))
	if len(r.Lost) > 0 {
		return &pawl.Error{Code: pawl.CodeInvalid, Msg: fmt.Sprintf("%d could not be carried over", len(r.Lost)), Hint: "What is written can be used without them."}
	}
	return nil
}

// besideCron says what runs it now does, where that is something else.
func besideCron(s moving.Schedule, o moving.Options, next []string) string {
	now := instants(s.NextIgnoring(o.Now, len(next)))
	if slices.Equal(now, next) {
		return "; so it does now"
	}
	return "; a cron that ignores CRON_TZ runs it at " + strings.Join(now, ", ")
}

func instants(list []time.Time) []string {
	texts := make([]string, len(list))
	for i, at := range list {
		texts[i] = pawl.FormatTime(at)
	}
	return texts
}
