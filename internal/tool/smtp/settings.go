package smtp

import (
	"net"
	netmail "net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
	"github.com/pawlrun/pawl/internal/redact"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Defaults and limits of settings.
const (
	portImplicit = 465
)

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
	s := &Server{
		env: settings.Env, name: settings.Name, host: written.Host.Value, port: written.Port, tls: written.TLS,
		username: written.Username.Value, password: written.Password.Value, timeout: written.Timeout,
	}
	switch {
	case s.tls != "":
	case s.port == portImplicit:
		s.tls = tlsImplicit
	default:
		s.tls = tlsStartTLS
	}
	if strings.ContainsAny(s.host, " \t\r\n/@[]") || strings.Contains(s.host, ":") && net.ParseIP(s.host) == nil {
		settings.Add("/host", "host %s is not the name of a host; the port has a field of its own", pawl.Quote(written.Host.Written))
	}
	checkLogin(settings, written)
	if from := written.From; from.Value != "" {
		address, fault := parseAddress(from.Value)
		if fault != "" {
			settings.Add("/from", "from %s cannot be used: %s", pawl.Quote(from.Written), fault)
		}
		s.from = netmail.Address{Name: address.Name, Address: address.Address}
	}
	s.secrets = redact.New(append(settings.Secrets(), redact.Secret{Name: "password", Value: s.password}))
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

// address is where the server is: host:port.
func (s *Server) address() string { return net.JoinHostPort(s.host, strconv.Itoa(s.port)) }
