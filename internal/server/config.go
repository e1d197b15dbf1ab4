package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/telemetry"
)

// Config is everything a server is told. The command line fills it from
// flags, environment and file.
type Config struct {
	Addr           string
	HookAddr       string // where deliveries of hooks are taken; empty is Addr
	Database       string
	Data           string
	Providers      []string
	ProviderDirs   []string
	ConnectionDir  string
	Workers        int
	SourceQueue    int
	AllowPrivate   []string
	NoCanary       bool     // jobs are not proved to run every minute
	AllowCommands  bool     // admins may bring commands over the API, too
	GrantUSDPerDay string   // the daily cap of grants that are made for schedules, in USD; none: no cap
	GrantUSDPerRun string   // the same for a run
	AllowHosts     []string // names under which a server on loopback may be asked, beside its own
	Roles          []string
	ScriptTimeout  time.Duration
	ScriptMemory   int64 // bytes
	LogFormat      string
	LogLevel       string
	MaxPayload     int64         // bytes of a job's payload
	Drain          time.Duration // how long running work may go on at the end

	AutoFix        string   // who mends scripts that failed: empty or off is nobody, else command, openai or anthropic
	AutoFixCommand []string // the program and its arguments
	AutoFixURL     string   // of the model's server
	AutoFixModel   string
	AutoFixKeyFile string

	NotifyWebhooks         []string // URLs that are told when a lane needs attention
	NotifySecretFile       string   // signs what they get
	NotifyMailHost         string   // of the mail server for the same; empty sends none
	NotifyMailPort         int      // 0 is the usual one
	NotifyMailTLS          string
	NotifyMailUser         string
	NotifyMailPasswordFile string
	NotifyMailFrom         string
	NotifyMailTo           []string
	HeartbeatURL           string // asked for while all is well
	PublicURL              string // of this server, for links in notices

	Keep []string // for how long things are kept, as KIND=AGE; what is absent is as usual

	ExecutionURL string // of the execution service, for a worker that has none of its own

	OTLPEndpoint string // of the collector of traces and metrics; empty: the variables of OpenTelemetry say whether there is one

	Dirs    []string                     // definitions
	Logs    io.Writer                    // nil is standard error
	Trace   func(sql string, args []any) // is told every statement, for measurements; nil: nobody is
	Version string
}

// The roles of a process.
const (
	RoleAPI    = "api"
	RoleWorker = "worker"
)

// Default is the configuration of a server that was told nothing.
func Default() Config {
	return Config{
		Addr: "127.0.0.1:7295", Database: "sqlite:.pawl/pawl.db", Data: ".pawl",
		Workers: 8, SourceQueue: 10, Roles: []string{RoleAPI, RoleWorker},
		GrantUSDPerDay: "50", GrantUSDPerRun: noCap,
		ScriptTimeout: 300 * time.Second, ScriptMemory: 128 << 20,
		LogFormat: "text", LogLevel: "info", MaxPayload: 1 << 20, Drain: 30 * time.Second, Version: "dev",
	}
}

// Validate finds what is wrong with a configuration before anything starts.
func (c Config) Validate() error {
	bad := func(name, msg, hint string) error {
		return &pawl.Error{Code: pawl.CodeInvalid, Op: "read configuration", Msg: name + ": " + msg, Hint: hint}
	}
	_, port, wrong := net.SplitHostPort(c.Addr)
	if wrong != nil {
		return bad("addr", fmt.Sprintf("%q is not an address", c.Addr), "Use HOST:PORT, such as 127.0.0.1:7295.")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return bad("addr", fmt.Sprintf("%q is not a port", port), "Ports are 1 to 65535, or 0 for any that is free.")
	}
	if c.HookAddr != "" {
		if err := c.validateHookAddr(bad); err != nil {
			return err
		}
	}
	switch scheme, _, _ := strings.Cut(c.Database, ":"); scheme {
	case "sqlite", "postgres", "postgresql":
	default:
		return bad("database", "unknown kind of database", "Use sqlite:PATH or postgres://USER@HOST/DATABASE.")
	}
	if c.Data == "" {
		return bad("data", "a folder is needed", "Use --data .pawl.")
	}
	if c.Workers < 1 || c.Workers > 10_000 {
		return bad("workers", fmt.Sprintf("%d is out of range", c.Workers), "Use 1 to 10000.")
	}
	if c.SourceQueue < 1 || c.SourceQueue > 10_000 {
		return bad("sourceQueue", fmt.Sprintf("%d is out of range", c.SourceQueue), "Use 1 to 10000.")
	}
	if len(c.Roles) == 0 {
		return bad("roles", "a process needs at least one role", "Use api, worker or both.")
	}
	for _, r := range c.Roles {
		if r != RoleAPI && r != RoleWorker {
			return bad("roles", fmt.Sprintf("unknown role %q", r), "Use api, worker or both.")
		}
	}
	if !slices.Contains([]string{"text", "json"}, c.LogFormat) {
		return bad("logFormat", fmt.Sprintf("unknown format %q", c.LogFormat), "Use text or json.")
	}
	if _, err := logLevel(c.LogLevel); err != nil {
		return bad("logLevel", fmt.Sprintf("unknown level %q", c.LogLevel), "Use debug, info, warn or error.")
	}
	for _, dir := range c.Dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return bad("DIR", fmt.Sprintf("%q is not a folder", dir), "Name a folder with definitions, such as *.workflow.ts.")
		}
	}
	if c.MaxPayload < 1 || c.ScriptTimeout <= 0 || c.ScriptMemory < 1<<20 || c.Drain < 0 {
		return bad("limits", "a limit is too small", "Payload at least 1 byte, script memory at least 1 MiB, times above zero.")
	}
	if _, err := retention.Parse(c.Keep); err != nil {
		e, _ := errors.AsType[*pawl.Error](err)
		return bad("keep", e.Msg, e.Hint)
	}
	if _, err := c.automaticCaps(); err != nil {
		return err
	}
	if _, err := telemetry.Wanted(c.OTLPEndpoint, os.Getenv); err != nil {
		return err
	}
	_, err := outbound.ParsePrefixes(c.AllowPrivate)
	return err
}

// validateHookAddr finds what is wrong with the address of hooks.
func (c Config) validateHookAddr(bad func(name, msg, hint string) error) error {
	_, port, err := net.SplitHostPort(c.HookAddr)
	n, noPort := strconv.Atoi(port)
	switch {
	case err != nil || noPort != nil || n < 0 || n > 65535:
		return bad("hookAddr", fmt.Sprintf("%q is not an address", c.HookAddr), "Use HOST:PORT, such as 0.0.0.0:7296.")
	case c.HookAddr == c.Addr && n != 0:
		return bad("hookAddr", "it is that of the server itself", "Leave it out to take deliveries there, or use another port.")
	case !slices.Contains(c.Roles, RoleAPI):
		return bad("hookAddr", "a process without the role api takes no deliveries", "Add the role, or leave the address out.")
	}
	return nil
}
