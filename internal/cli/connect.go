package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/internal/cli/client"
)

// connect makes the client of a command. The token is the one that was given,
// that of the token file, or that of the data folder, which is read only for
// a server on this machine.
func (sf *settingFlags) connect(p *Process) (*client.Client, error) {
	r, err := sf.load(p)
	if err != nil {
		return nil, err
	}
	token, err := r.findToken()
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{URL: r.url, Token: token})
}

func (r *resolved) findToken() (string, error) {
	if r.token != "" {
		return r.token, nil
	}
	if r.tokenFile != "" {
		text, err := os.ReadFile(r.tokenFile)
		if err != nil {
			return "", usageError("", "%s: %s", r.origin["tokenFile"], err)
		}
		return strings.TrimSpace(string(text)), nil
	}
	if !client.Local(r.url) {
		return "", nil
	}
	text, err := os.ReadFile(filepath.Join(r.server.Data, "admin.token"))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read admin token: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
