package httptool

import (
	"context"
	"fmt"
	"net/http"
)

// Test asks for the base URL, or for the path that the definition names. Any
// answer will do by which the service neither fails nor refuses the
// credentials.
func (s *Service) Test(ctx context.Context) (string, error) {
	target, err := s.target(s.probe, nil)
	if err != nil {
		return "", s.withoutSecrets(err)
	}
	r := s.newQuestion(target)
	a, failure := s.send(ctx, r)
	switch {
	case failure != nil:
		return "", s.withoutSecrets(failure)
	case a.status >= 500 || a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return "", s.withoutSecrets(s.refused(r, a))
	}
	return s.secrets.Text(fmt.Sprintf("%s was answered %d %s.", s.described(r), a.status, http.StatusText(a.status))), nil
}
