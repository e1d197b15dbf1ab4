package smtp

import (
	"net"
	netmail "net/mail"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Defaults and limits of settings.
const (
	defaultTimeout = time.Minute
	longestTimeout = 10 * time.Minute

	portSubmission = 587
	portImplicit   = 465
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
	before := len(settings.Faults())
	s := &Server{env: settings.Env(), name: settings.Name(), tls: tlsStartTLS}
	s.readHost(settings)
	s.port = settings.Number("port", portSubmission, 1, 65535)
	s.readTLS(settings)
	s.readLogin(settings)
	s.readFrom(settings)
	s.timeout = settings.Duration("timeout", defaultTimeout, time.Second, longestTimeout)
	s.secrets = connector.NewRedactor(append(settings.Secrets(), connector.Secret{Name: "password", Value: s.password}))
	return s, len(settings.Faults()) == before
}

func (s *Server) readHost(settings *connector.Settings) {
	host, ok := settings.OneOf("host")
	if !ok {
		return
	}
	if strings.ContainsAny(host.Value, " \t\r\n/@[]") || strings.Contains(host.Value, ":") && net.ParseIP(host.Value) == nil {
		settings.Refuse(host, "host %s is not the name of a host; the port has a field of its own", connector.Quote(host.Written))
		return
	}
	s.host = host.Value
}

// readTLS reads how the connection is secured. Port 465 is for TLS from the
// first byte, so that nobody has to say so.
func (s *Server) readTLS(settings *connector.Settings) {
	if s.port == portImplicit {
		s.tls = tlsImplicit
	}
	if !settings.Has("tls") {
		return
	}
	field, ok := settings.Plain("tls")
	if !ok {
		return
	}
	switch field.Value {
	case tlsStartTLS, tlsImplicit, tlsNone:
		s.tls = field.Value
	default:
		known := []string{tlsStartTLS, tlsImplicit, tlsNone}
		settings.Refuse(field, "unknown tls %s. %s", connector.Quote(field.Value), connector.Suggest(field.Value, known, "It is one of "+strings.Join(known, ", ")+"."))
	}
}

func (s *Server) readLogin(settings *connector.Settings) {
	username, hasName := settings.Optional("username")
	password, hasPassword := settings.Optional("password")
	switch {
	case hasName && !settings.Has("password"):
		settings.Refuse(username, "there is a username and no password")
	case hasPassword && !settings.Has("username"):
		settings.Refuse(password, "there is a password and no username")
	case hasName && strings.ContainsAny(username.Value, "\x00\r\n"), hasPassword && strings.ContainsAny(password.Value, "\x00\r\n"):
		settings.Refuse(password, "username or password holds a line break or a zero character")
	}
	s.username, s.password = username.Value, password.Value
}

func (s *Server) readFrom(settings *connector.Settings) {
	from, ok := settings.OneOf("from")
	if !ok {
		return
	}
	address, fault := parseAddress(from.Value)
	if fault != "" {
		settings.Refuse(from, "from %s cannot be used: %s", connector.Quote(from.Written), fault)
		return
	}
	s.from = netmail.Address{Name: address.Name, Address: address.Address}
}

// address is where the server is: host:port.
func (s *Server) address() string { return net.JoinHostPort(s.host, strconv.Itoa(s.port)) }
