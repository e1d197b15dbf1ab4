package smtp

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/mail"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

const portImplicit = 465

// New makes the connection that a definition describes:
//
//	host: smtp.example.com
//	port: 587            # 465 is with tls: implicit
//	tls: starttls        # or implicit, or none for loopback and private addresses
//	username: robot
//	password: ${SMTP_PASSWORD}
//	from: Pawl <robot@example.com>
//	timeout: 1m
func New(settings *connector.Settings) (connector.Connection, bool) {
	var written written
	settings.Read(&written)
	s := &Server{name: settings.Name, server: mail.Server{
		Host: written.Host.Value, Port: written.Port, TLS: mail.TLS(written.TLS), Timeout: written.Timeout,
		Username: written.Username.Value, Password: written.Password.Value, Dial: dialer(settings.Env), Plain: isLocal,
	}}
	switch {
	case s.server.TLS != "":
	case s.server.Port == portImplicit:
		s.server.TLS = mail.TLSImplicit
	default:
		s.server.TLS = mail.TLSStart
	}
	if strings.ContainsAny(s.server.Host, " \t\r\n/@[]") || strings.Contains(s.server.Host, ":") && net.ParseIP(s.server.Host) == nil {
		settings.Add("/host", "host %s is not the name of a host; the port has a field of its own", pawl.Quote(written.Host.Written))
	}
	checkLogin(settings, written)
	if from := written.From; from.Value != "" {
		address, fault := mail.ParseAddress(from.Value)
		if fault != "" {
			settings.Add("/from", "from %s cannot be used: %s", pawl.Quote(from.Written), fault)
		}
		s.from = address
	}
	s.secrets = redact.New(append(settings.Secrets(), redact.Secret{Name: "password", Value: s.server.Password}))
	return s, settings.OK()
}

type written struct {
	Host     definition.Secret `json:"host" definition:"required"`
	Port     int               `json:"port" definition:"default=587,min=1,max=65535"`
	TLS      string            `json:"tls" definition:"oneof=starttls|implicit|none"`
	Username definition.Secret `json:"username"`
	Password definition.Secret `json:"password"`
	From     definition.Secret `json:"from" definition:"required"`
	Timeout  time.Duration     `json:"timeout" definition:"default=1m,min=1s,max=10m"`
}

func checkLogin(settings *connector.Settings, w written) {
	switch hasName, hasPassword := settings.Has("/username"), settings.Has("/password"); {
	case hasName && !hasPassword:
		settings.Add("/username", "there is a username and no password")
	case hasPassword && !hasName:
		settings.Add("/password", "there is a password and no username")
	case strings.ContainsAny(w.Username.Value+w.Password.Value, "\x00\r\n"):
		settings.Add("/password", "username or password holds a line break or a zero character")
	}
}

// dialer connects to addresses that may be called. Its errors are
// *connector.Error.
func dialer(env connector.Env) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := env.Dial(ctx, network, address)
		if err != nil {
			return nil, connector.DialFault(address, err)
		}
		return conn, nil
	}
}

// isLocal reports whether an address is not reached through the internet.
func isLocal(ip netip.Addr) bool { return ip.IsLoopback() || ip.IsPrivate() }
