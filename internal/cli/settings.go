package cli

import (
	"github.com/pawlrun/pawl/internal/outbound"
	"github.com/pawlrun/pawl/internal/retention"
	"github.com/pawlrun/pawl/internal/server"
)

// values are what the settings come to.
type values struct {
	server    server.Config
	url       string // where commands find the server
	token     string
	tokenFile string
}

func defaultValues() values {
	return values{server: server.Default(), url: "http://127.0.0.1:7295"}
}

// scope says which commands a setting is for.
type scope int

const (
	forServer scope = 1 << iota
	forClient
	seenByClient // no flag, but clients read the variable and the file
	forOffline   // commands that open the database themselves
)

// setting is the one definition of a setting.
type setting struct {
	key   string // in the config file; empty is not allowed there
	flag  string // empty has no flag
	env   string // empty has no variable
	scope scope
	usage string // with the name of the value in backquotes

	// paths: the values are paths, so that commas do not part them.
	paths bool

	// amount: the text may also be written as a number in the file.
	amount bool

	// merged: a list of NAME=VALUE of which each place adds to the ones before;
	// in the config file it is a mapping.
	merged bool

	// at is where the value goes. Its type says what is accepted: *string,
	// *[]string, *bool, *int, *int64 (bytes), *time.Duration.
	at func(*values) any

	// check finds what is wrong with a value beyond its type; nil accepts all.
	check func(*values) error
}

// settings are all settings, in the order in which help shows their subjects.
func settings() []setting {
	return append(serverSettings(), clientSettings()...)
}

// serverSettings are those of a server.
func serverSettings() []setting {
	return append(workSettings(), outsideSettings()...)
}

// workSettings are what it does, and with what.
func workSettings() []setting {
	return []setting{
		{key: "addr", flag: "addr", env: "PAWL_ADDR", scope: forServer | seenByClient,
			usage: "listen on `HOST:PORT`", at: func(v *values) any { return &v.server.Addr }},
		{key: "hookAddr", flag: "hook-addr", env: "PAWL_HOOK_ADDR", scope: forServer,
			usage: "take deliveries of hooks on `HOST:PORT`, and nothing else there (default the address of the server)", at: func(v *values) any { return &v.server.HookAddr }},
		{key: "database", flag: "database", env: "PAWL_DATABASE", scope: forServer | forOffline,
			usage: "store data in the database at `URL`: sqlite:PATH or postgres://...", at: func(v *values) any { return &v.server.Database }},
		{key: "data", flag: "data", env: "PAWL_DATA", scope: forServer | forClient | forOffline, paths: true,
			usage: "keep the database file and the admin token in `FOLDER`", at: func(v *values) any { return &v.server.Data }},
		{key: "providers", flag: "provider", env: "PAWL_PROVIDER", scope: forServer, paths: true,
			usage: "read a provider's rate limits and keys from `FILE` (repeatable)", at: func(v *values) any { return &v.server.Providers }},
		{key: "providerDirs", flag: "provider-dir", env: "PAWL_PROVIDER_DIR", scope: forServer, paths: true,
			usage: "read all providers in `DIR` (repeatable)", at: func(v *values) any { return &v.server.ProviderDirs }},
		{key: "connectionDir", flag: "connection-dir", env: "PAWL_CONNECTION_DIR", scope: forServer, paths: true,
			usage: "read connections and executors from `DIR`", at: func(v *values) any { return &v.server.ConnectionDir }},
		{key: "workers", flag: "workers", env: "PAWL_WORKERS", scope: forServer,
			usage: "run at most `N` jobs at once", at: func(v *values) any { return &v.server.Workers }},
		{key: "sourceQueue", flag: "source-queue", env: "PAWL_SOURCE_QUEUE", scope: forServer,
			usage: "allow at most `N` sources to wait for a worker", at: func(v *values) any { return &v.server.SourceQueue }},
		{key: "allowHost", flag: "allow-host", env: "PAWL_ALLOW_HOST", scope: forServer,
			usage: "also accept requests for the host `NAME` when listening on loopback only (repeatable)", at: func(v *values) any { return &v.server.AllowHosts },
		},
		{key: "allowPrivate", flag: "allow-private", env: "PAWL_ALLOW_PRIVATE", scope: forServer,
			usage: "allow jobs to call private addresses in `CIDR` (repeatable)", at: func(v *values) any { return &v.server.AllowPrivate },
			check: func(v *values) error { _, err := outbound.ParsePrefixes(v.server.AllowPrivate); return err }},
		{key: "allowCommands", flag: "allow-commands", env: "PAWL_ALLOW_COMMANDS", scope: forServer,
			usage: "let admins apply schedules that run commands of this machine; definitions in served folders always may", at: func(v *values) any { return &v.server.AllowCommands }},
		{key: "noCanary", flag: "no-canary", env: "PAWL_NO_CANARY", scope: forServer,
			usage: "do not prove every minute, by a job of the server's own, that jobs run", at: func(v *values) any { return &v.server.NoCanary }},
		{key: "grantUsdPerDay", flag: "grant-usd-per-day", env: "PAWL_GRANT_USD_PER_DAY", scope: forServer, amount: true,
			usage: "cap the grants that are made for schedules at `USD` a day; none: no cap", at: func(v *values) any { return &v.server.GrantUSDPerDay },
			check: func(v *values) error { _, err := server.CapOf(v.server.GrantUSDPerDay); return err }},
		{key: "grantUsdPerRun", flag: "grant-usd-per-run", env: "PAWL_GRANT_USD_PER_RUN", scope: forServer, amount: true,
			usage: "cap the grants that are made for schedules at `USD` a run; none: no cap", at: func(v *values) any { return &v.server.GrantUSDPerRun },
			check: func(v *values) error { _, err := server.CapOf(v.server.GrantUSDPerRun); return err }},
		{key: "roles", flag: "roles", env: "PAWL_ROLES", scope: forServer,
			usage: "`ROLES` of this process: api, worker", at: func(v *values) any { return &v.server.Roles }},
		{key: "scriptTimeout", flag: "script-timeout", env: "PAWL_SCRIPT_TIMEOUT", scope: forServer,
			usage: "stop a phase of a script after `TIME`", at: func(v *values) any { return &v.server.ScriptTimeout }},
		{key: "scriptMemory", flag: "script-memory", env: "PAWL_SCRIPT_MEMORY", scope: forServer,
			usage: "allow a script to use `SIZE` of memory", at: func(v *values) any { return &v.server.ScriptMemory }},
		{key: "maxPayload", flag: "max-payload", env: "PAWL_MAX_PAYLOAD", scope: forServer,
			usage: "accept payloads up to `SIZE`", at: func(v *values) any { return &v.server.MaxPayload }},
		{key: "drain", flag: "drain", env: "PAWL_DRAIN", scope: forServer,
			usage: "give running work `TIME` to finish when the server stops", at: func(v *values) any { return &v.server.Drain }},
		{key: "autoFix", flag: "auto-fix", env: "PAWL_AUTO_FIX", scope: forServer,
			usage: "fix failed scripts with `WHOM`: off, command, openai or anthropic", at: func(v *values) any { return &v.server.AutoFix }},
		{key: "autoFixCommand", flag: "auto-fix-command", env: "PAWL_AUTO_FIX_COMMAND", scope: forServer,
			usage: "run `PROGRAM`, which reads the evidence as JSON and writes a script; repeat the flag for its arguments", at: func(v *values) any { return &v.server.AutoFixCommand }},
		{key: "autoFixURL", flag: "auto-fix-url", env: "PAWL_AUTO_FIX_URL", scope: forServer,
			usage: "send requests for fixes to the model at `URL`", at: func(v *values) any { return &v.server.AutoFixURL }},
		{key: "autoFixModel", flag: "auto-fix-model", env: "PAWL_AUTO_FIX_MODEL", scope: forServer,
			usage: "use the model `NAME`", at: func(v *values) any { return &v.server.AutoFixModel }},
		{key: "autoFixKeyFile", flag: "auto-fix-key-file", env: "PAWL_AUTO_FIX_KEY_FILE", scope: forServer, paths: true,
			usage: "read the model's API key from `FILE`", at: func(v *values) any { return &v.server.AutoFixKeyFile }},
	}
}

// outsideSettings are whom it tells, how it is reached and watched, and what it
// keeps.
func outsideSettings() []setting {
	return []setting{
		{key: "notifyWebhooks", flag: "notify-webhook", env: "PAWL_NOTIFY_WEBHOOK", scope: forServer,
			usage: "post to `URL` when a lane needs attention, and when it has recovered (repeatable)", at: func(v *values) any { return &v.server.NotifyWebhooks }},
		{key: "notifySecretFile", flag: "notify-secret-file", env: "PAWL_NOTIFY_SECRET_FILE", scope: forServer, paths: true,
			usage: "sign webhooks with the secret in `FILE`", at: func(v *values) any { return &v.server.NotifySecretFile }},
		{key: "notifyMailHost", flag: "notify-mail-host", env: "PAWL_NOTIFY_MAIL_HOST", scope: forServer,
			usage: "send notifications through the mail server `HOST`", at: func(v *values) any { return &v.server.NotifyMailHost }},
		{key: "notifyMailPort", flag: "notify-mail-port", env: "PAWL_NOTIFY_MAIL_PORT", scope: forServer,
			usage: "`PORT` of the mail server; 0 is the default port", at: func(v *values) any { return &v.server.NotifyMailPort }},
		{key: "notifyMailTLS", flag: "notify-mail-tls", env: "PAWL_NOTIFY_MAIL_TLS", scope: forServer,
			usage: "connect by `WAY`: starttls, tls, or none (loopback only)", at: func(v *values) any { return &v.server.NotifyMailTLS }},
		{key: "notifyMailUser", flag: "notify-mail-user", env: "PAWL_NOTIFY_MAIL_USER", scope: forServer,
			usage: "sign in to the mail server as `NAME`", at: func(v *values) any { return &v.server.NotifyMailUser }},
		{key: "notifyMailPasswordFile", flag: "notify-mail-password-file", env: "PAWL_NOTIFY_MAIL_PASSWORD_FILE", scope: forServer, paths: true,
			usage: "read the mail password from `FILE`", at: func(v *values) any { return &v.server.NotifyMailPasswordFile }},
		{key: "notifyMailFrom", flag: "notify-mail-from", env: "PAWL_NOTIFY_MAIL_FROM", scope: forServer,
			usage: "send notifications from `ADDRESS`", at: func(v *values) any { return &v.server.NotifyMailFrom }},
		{key: "notifyMailTo", flag: "notify-mail-to", env: "PAWL_NOTIFY_MAIL_TO", scope: forServer,
			usage: "send notifications to `ADDRESS` (repeatable)", at: func(v *values) any { return &v.server.NotifyMailTo }},
		{key: "heartbeatURL", flag: "heartbeat-url", env: "PAWL_HEARTBEAT_URL", scope: forServer,
			usage: "request `URL` every minute while the server is healthy, so that a monitor notices silence", at: func(v *values) any { return &v.server.HeartbeatURL }},
		{key: "publicURL", flag: "public-url", env: "PAWL_PUBLIC_URL", scope: forServer,
			usage: "public `URL` of this server, for links in notifications", at: func(v *values) any { return &v.server.PublicURL }},
		{key: "executionURL", flag: "execution-url", env: "PAWL_EXECUTION_URL", scope: forServer,
			usage: "run the graphs of schedules in the process at `URL` (default this one)", at: func(v *values) any { return &v.server.ExecutionURL }},
		{key: "keep", flag: "keep", env: "PAWL_KEEP", scope: forServer, merged: true,
			usage: "keep a kind of history for so long, as `KIND=AGE` such as runs=30d, or forever (repeatable)", at: func(v *values) any { return &v.server.Keep },
			check: func(v *values) error { _, err := retention.Parse(v.server.Keep); return err }},
		{key: "otlpEndpoint", flag: "otlp-endpoint", env: "PAWL_OTLP_ENDPOINT", scope: forServer,
			usage: "send OpenTelemetry traces and metrics to the collector at `URL`, by OTLP over HTTP (default OTEL_EXPORTER_OTLP_ENDPOINT)", at: func(v *values) any { return &v.server.OTLPEndpoint }},
		{key: "logFormat", flag: "log-format", env: "PAWL_LOG_FORMAT", scope: forServer,
			usage: "write the log as `FORMAT`: text or json", at: func(v *values) any { return &v.server.LogFormat }},
		{key: "logLevel", flag: "log-level", env: "PAWL_LOG_LEVEL", scope: forServer,
			usage: "log messages of `LEVEL` and above: debug, info, warn or error", at: func(v *values) any { return &v.server.LogLevel }},
	}
}

func clientSettings() []setting {
	return []setting{
		{key: "server", flag: "server", env: "PAWL_URL", scope: forClient,
			usage: "talk to the server at `URL`", at: func(v *values) any { return &v.url }},
		{flag: "token", env: "PAWL_TOKEN", scope: forClient,
			usage: "authenticate with `TOKEN` (default read from the data folder if the server is local)", at: func(v *values) any { return &v.token }},
		{key: "tokenFile", flag: "token-file", env: "PAWL_TOKEN_FILE", scope: forClient, paths: true,
			usage: "read the token from `FILE`", at: func(v *values) any { return &v.tokenFile }},
	}
}

// fileKeys are the keys that a config file may have.
func fileKeys() []string {
	var keys []string
	for _, s := range settings() {
		if s.key != "" {
			keys = append(keys, s.key)
		}
	}
	return keys
}
