package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// errNotInstalled is what findBinaries answers when no folder will do.
var errNotInstalled = errors.New("no PostgreSQL server programs found (postgres, initdb and pg_ctl in one folder)")

// Find returns the folder of the PostgreSQL server programs that a private
// cluster would use: the first of PATH that works, else the newest version in
// the places where packages put them.
func Find(ctx context.Context) (string, error) {
	owner, err := clusterOwner()
	if err != nil {
		return "", err
	}
	return findBinaries(ctx, owner, candidateFolders(os.Getenv("PATH")))
}

// findBinaries tries the folders in order. A folder counts only when its
// postgres runs as the owner: some machines have wrappers in PATH that do
// nothing, or programs below a home that the owner cannot enter.
func findBinaries(ctx context.Context, owner owner, folders []string) (string, error) {
	for _, dir := range folders {
		if hasServerPrograms(dir) && owner.command(ctx, "/", filepath.Join(dir, "postgres"), "--version").Run() == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: install them with: %s", errNotInstalled, installCommand(runtime.GOOS))
}

func hasServerPrograms(dir string) bool {
	for _, name := range []string{"postgres", "initdb", "pg_ctl"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// candidateFolders lists absolute folders only: programs are not looked for
// below the working folder.
func candidateFolders(path string) []string {
	folders := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) })
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                   // Red Hat
		"/opt/homebrew/opt/postgresql@*/bin", // Homebrew
		"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the only error is a bad pattern
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(majorVersion(b), majorVersion(a)) })
		folders = append(folders, found...)
	}
	return folders
}

// majorVersion reads the 15 of /usr/lib/postgresql/15/bin or
// postgresql@15/bin, and 0 where there is none.
func majorVersion(binFolder string) int {
	name := filepath.Base(filepath.Dir(binFolder))
	digits := name[strings.LastIndexAny(name, "@-")+1:]
	version, _ := strconv.Atoi(digits) // "latest" sorts last
	return version
}

func installCommand(goos string) string {
	switch goos {
	case "darwin":
		return "brew install postgresql@17"
	case "linux":
		return "apt-get install postgresql (or your distribution's PostgreSQL server package)"
	}
	return "your system's PostgreSQL server package"
}
