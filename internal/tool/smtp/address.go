package smtp

import (
	"net"
	netmail "net/mail"
	"strconv"
	"strings"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Address is everybody who gets the message, and the server that it is given
// to. Names of recipients are left out: they can be anything.
func (s *Server) Address(c connector.Call) string {
	l, err := parse(c.Args)
	if err != nil {
		return ""
	}
	var who []string
	for _, list := range [][]netmail.Address{l.to, l.cc, l.bcc} {
		for _, a := range list {
			who = append(who, a.Address)
		}
	}
	return "to " + strings.Join(who, ", ") + " from " + s.from.Address + " through " + net.JoinHostPort(s.host, strconv.Itoa(s.port))
}
