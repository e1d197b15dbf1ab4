package smtp

import (
	netmail "net/mail"
	"strings"

	"github.com/pawlrun/pawl/internal/tool/connector"
)

// Address is everybody who gets the message, and the server that it is given
// to. Names of recipients are left out: they can be anything.
func (s *Server) Address(c connector.Call) string {
	m, err := parse(c.Args)
	if err != nil {
		return ""
	}
	var who []string
	for _, list := range [][]netmail.Address{m.To, m.Cc, m.Bcc} {
		for _, a := range list {
			who = append(who, a.Address)
		}
	}
	return "to " + strings.Join(who, ", ") + " from " + s.from.Address + " through " + s.server.Address()
}
