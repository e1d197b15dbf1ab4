package httptool

import "github.com/pawlrun/pawl/internal/tool/connector"

// Address is the request line of a call with the whole URL.
func (s *Service) Address(c connector.Call) string {
	a, err := decodeArguments(c.Args)
	if err != nil {
		return ""
	}
	r, err := s.newRequest(c.Method, a)
	if err != nil {
		return ""
	}
	return r.verb + " " + r.url.String()
}
