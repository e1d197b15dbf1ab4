package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlrun/pawl/client"
	"github.com/pawlrun/pawl/internal/store"
)

// connect makes the client of a command. The token is the one that was given,
// that of the token file, or that of the data folder, which is read only for
// a server on this machine. Which of them may go to which server is decided by
// findToken.
func (sf *settingFlags) connect(p *Process) (*client.Client, error) {
	r, err := sf.load(p)
	if err != nil {
		return nil, err
	}
	token, err := r.findToken()
	if err != nil {
		return nil, err
	}
	return client.New(client.Config{URL: r.url, Token: token, UserAgent: userAgent, Renew: r.renewToken, Patience: r.patience(p), Hints: hints()})
}

const userAgent = "pawl-cli"

// hints tell how commands are told which server to ask, and as whom.
func hints() client.Hints {
	return client.Hints{
		NoToken:     "Set PAWL_TOKEN, or run this in the folder of the server's data (its admin.token is read).",
		BadToken:    "The token is not valid here: check --token, PAWL_TOKEN, or the admin.token of the data folder.",
		Unreachable: "Check --server and PAWL_URL, and that the server runs.",
		NotPawl:     "Is it a Pawl server? Check --server and PAWL_URL.",
	}
}

// patience is how long to wait for a server on this machine that does not
// listen yet: a moment, because it may have been started together with this
// command, and longer while its database is in use.
func (r *resolved) patience(p *Process) func() time.Duration {
	if p.Patience == 0 || !client.Local(r.url) {
		return nil
	}
	return func() time.Duration {
		if path, ok := store.SQLitePath(r.server.Database); ok && store.ServerOf(path).Alive() {
			return 5 * p.Patience
		}
		return p.Patience
	}
}

// renewToken is the token as it is now: a server writes the one of its data
// folder when it starts for the first time.
func (r *resolved) renewToken() string {
	token, err := r.findToken()
	if err != nil {
		return "" // the first answer stands, and tells what to do
	}
	return token
}

// findToken finds the token, if it may go to the server.
//
// A config file that was not named but found in the working directory may come
// from anybody: a cloned repository, an unpacked archive. So it cannot choose
// where a token of the user goes, nor which file is sent as one:
//
//   - a token of a flag or of the environment, and one in a file that those
//     name, goes to a server that they name too, or to the default one;
//   - a server that a found file names gets tokens out of its folder only;
//   - a tokenFile of a found file is within its folder.
//
// Links do not lead out of the folder.
func (r *resolved) findToken() (string, error) {
	switch {
	case r.token != "":
		return r.token, r.mayGo("token")
	case r.tokenFile != "":
		if err := r.mayGo("tokenFile"); err != nil {
			return "", err
		}
		text, err := r.readToken(r.tokenFile, r.found["tokenFile"])
		if err != nil {
			return "", usageError(r.ownHint("tokenFile"), "%s: %s", r.origin["tokenFile"], err)
		}
		return text, nil
	case !client.Local(r.url):
		return "", nil
	}
	return r.adminToken()
}

// adminToken is the token of the data folder, empty if there is none.
func (r *resolved) adminToken() (string, error) {
	if r.serverFound() && r.origin["data"] != "" && !r.found["data"] {
		return "", r.mayGo("data")
	}
	text, err := r.readToken(filepath.Join(r.server.Data, "admin.token"), r.serverFound())
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil && r.serverFound() {
		return "", usageError(r.ownHint("data"), "the token of the data folder is not sent to the server of %s: %s", r.serverPlace(), err)
	}
	if err != nil {
		return "", fmt.Errorf("read admin token: %w", err)
	}
	return text, nil
}

// serverFound reports whether the server was chosen by a config file that
// nobody named. The default server is nobody's choice.
func (r *resolved) serverFound() bool {
	if r.url == defaultValues().url {
		return false
	}
	if r.origin["server"] != "" {
		return r.found["server"]
	}
	return r.found["addr"]
}

// serverPlace is where the server was named.
func (r *resolved) serverPlace() string {
	if place := r.origin["server"]; place != "" {
		return place
	}
	return r.origin["addr"]
}

// mayGo refuses to send what the user gave to a server that a found config file
// chose.
func (r *resolved) mayGo(name string) error {
	if !r.serverFound() || r.found[name] {
		return nil
	}
	return usageError(r.ownHint("server"), "%s: the token of %s is not sent to a server that only a file of this folder names", r.serverPlace(), r.origin[name])
}

// ownHint says how to make a setting of a found file one's own.
func (r *resolved) ownHint(name string) string {
	if r.folder == "" {
		return ""
	}
	flag := map[string]string{"server": "--server " + r.url + " (or PAWL_URL)", "tokenFile": "--token-file FILE (or PAWL_TOKEN_FILE)", "data": "--data FOLDER (or PAWL_DATA)"}[name]
	return fmt.Sprintf("If you trust it, say so: with %s, or with --config %s.", flag, defaultConfigFile)
}

// maxToken bounds what is read as a token, in bytes.
const maxToken = 4096

// readToken reads the one line of a file. confined: the file has to be in the
// folder of the config file, and no link may lead out of it.
func (r *resolved) readToken(path string, confined bool) (string, error) {
	file, err := r.openToken(path, confined)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // only read
	raw, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(raw))
	// What the file holds instead is not repeated: it may be another secret.
	if len(raw) > maxToken || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", fmt.Errorf("%s holds no token, which is one line of visible ASCII", path)
	}
	return text, nil
}

func (r *resolved) openToken(path string, confined bool) (*os.File, error) {
	if !confined {
		return os.Open(path)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	within, err := filepath.Rel(r.folder, whole)
	if err != nil || !filepath.IsLocal(within) {
		return nil, fmt.Errorf("%s is outside of the folder of %s", path, defaultConfigFile)
	}
	root, err := os.OpenRoot(r.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only read
	return root.Open(within)
}
