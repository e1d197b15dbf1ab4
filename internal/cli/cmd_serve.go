package cli

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/pawlrun/pawl/internal/server"
)

func newServeCommand(p *Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [DIR...]",
		Short: "Start the server",
		Long: "Starts the server: the queue, its workers and the HTTP API. Definitions in DIR are applied\n" +
			"at start; one with errors is reported, and its last applied version stays in effect.\n\n" +
			"Every setting can be a flag, an environment variable, or a line of pawl.yaml (the same name\n" +
			"in camelCase). Flags take precedence over environment variables, and those over the file.",
		Example: "  pawl serve\n" +
			"  pawl serve --database postgres://pawl@db/pawl --addr 0.0.0.0:7295\n" +
			"  pawl serve ./definitions --data /var/lib/pawl",
		GroupID: groupStart, Args: takes(0, -1),
	}
	flags := addSettingFlags(cmd, forServer)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := flags.load(p)
		if err != nil {
			return err
		}
		cfg := r.server
		cfg.Version = buildVersion().Version
		for _, dir := range args {
			cfg.Dirs = append(cfg.Dirs, p.path(dir))
		}
		if err := cfg.Validate(); err != nil {
			return r.explain(err)
		}
		return server.Run(cmd.Context(), cfg, func(s server.Started) { p.announce(s, cfg) })
	}
	return cmd
}

// announce tells that the server serves: a person in a few lines, a log in one.
func (p *Process) announce(s server.Started, cfg server.Config) {
	if !p.StderrTerminal {
		serveLog(p.Stderr, cfg.LogFormat).Info("serving", "url", s.URL, "hooks", s.HookURL, "database", withoutPassword(s.Database), "adminToken", s.AdminTokenPath)
		return
	}
	bold := func(s string) string { return s }
	if p.paint(true) {
		bold = func(s string) string { return text.Bold.EscapeSeq() + s + text.Reset.EscapeSeq() }
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n  %s listens on %s\n\n", bold("pawl "+cfg.Version), bold(s.URL))
	fmt.Fprintf(&b, "  database   %s\n", withoutPassword(s.Database))
	if s.HookURL != "" && s.HookURL != s.URL {
		fmt.Fprintf(&b, "  hooks      %s\n", s.HookURL)
	}
	if s.AdminTokenPath != "" {
		fmt.Fprintf(&b, "  token      in %s\n", s.AdminTokenPath)
	}
	if s.SignInURL != "" { // a terminal only: logs are kept, and read by others
		fmt.Fprintf(&b, "\n  Open it in a browser (works once, for 15 minutes):\n  %s\n", bold(s.SignInURL))
	}
	fmt.Fprintf(&b, "\n  In another terminal:  %s\n  Stop it with:         Ctrl-C\n\n", bold(nextCommand(s, cfg)))
	_, _ = io.WriteString(p.Stderr, b.String()) // nobody is there to be told that nobody is there
}

// nextCommand is one that shows something of this server.
func nextCommand(s server.Started, cfg server.Config) string {
	command := "pawl get jobs -w"
	if s.URL != defaultValues().url {
		command += " --server " + s.URL
	}
	if cfg.Data != defaultValues().server.Data {
		command += " --data " + cfg.Data
	}
	return command
}

func serveLog(w io.Writer, format string) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}

// withoutPassword makes a database URL fit to be shown.
func withoutPassword(database string) string {
	if u, err := url.Parse(database); err == nil {
		return u.Redacted()
	}
	kind, _, _ := strings.Cut(database, ":")
	return kind
}
