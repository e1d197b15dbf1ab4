package sqltool

import (
	"context"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// postgresOptions are what may follow the ? of a url. Others would read files,
// or replace what stands before the ?.
func postgresOptions() []string {
	return []string{"application_name", "channel_binding", "connect_timeout", "options", "search_path", "sslcert", "sslkey", "sslmode", "sslnegotiation", "sslrootcert", "sslsni", "target_session_attrs"}
}

// newPostgres reads the url of a server. What the environment of this process
// says about PostgreSQL is not for connections: user, password and options are
// those of the url. A fault holds nothing of the url, which has a password.
func newPostgres(s *connector.Settings, address string) (p *postgres, fault string) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "it is not a URL"
	}
	hosts := u.Hostname()
	switch {
	case hosts == "" || strings.ContainsAny(hosts, "/@%"):
		return nil, "it names no host; connections are made by TCP only"
	case u.User.Username() == "":
		return nil, "it names no user"
	case strings.Trim(u.Path, "/") == "":
		return nil, "it names no database"
	}
	options, fault := readOptions(s.Folder(), u)
	if fault != "" {
		return nil, fault
	}
	u.RawQuery = options.Encode()
	if u.Port() == "" && !strings.Contains(hosts, ",") {
		u.Host += ":5432"
	}
	config, err := pgconn.ParseConfig(u.String())
	if err != nil {
		return nil, "it is not a URL of PostgreSQL, or a file that it names cannot be read"
	}
	password, _ := u.User.Password()
	config.User, config.Password = u.User.Username(), password
	config.RuntimeParams = map[string]string{"application_name": "pawl"}
	for _, name := range []string{"application_name", "options", "search_path"} {
		if options.Has(name) {
			config.RuntimeParams[name] = options.Get(name)
		}
	}
	config.DialFunc = s.Dial
	// The guarded dialer resolves names itself, and sees every address.
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.MaxProtocolMessageBodyLen = largestMessage
	return &postgres{config: config, server: u.Host + "/" + strings.Trim(u.Path, "/")}, ""
}

// readOptions checks the options of a url. Files are relative to the folder of
// the definition.
func readOptions(folder string, u *url.URL) (options url.Values, fault string) {
	options, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, "what follows the ? cannot be read"
	}
	known := postgresOptions()
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if !slices.Contains(known, name) {
			return nil, "unknown option " + pawl.Quote(name) + ". " + pawl.Suggest(name, known, "The options are "+strings.Join(known, ", ")+".")
		}
	}
	for _, name := range []string{"sslrootcert", "sslcert", "sslkey"} {
		if file := options.Get(name); file != "" && file != "system" && !filepath.IsAbs(file) {
			options.Set(name, filepath.Join(folder, file))
		}
	}
	// Without them, those of the environment of this process would count.
	for name, normal := range map[string]string{"sslmode": "prefer", "target_session_attrs": "any"} {
		if !options.Has(name) {
			options.Set(name, normal)
		}
	}
	return options, ""
}
