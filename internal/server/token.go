package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

// adminName is the user that owns the first token.
const adminName = "admin"

// ensureAdminToken makes sure that the data folder has a token with which its
// owner can do everything. A file that is there is kept: if this database does
// not know its token it learns it, and if the token was revoked it stays so.
func ensureAdminToken(ctx context.Context, db *store.DB, dataDir string, log *slog.Logger) (path string, err error) {
	path = filepath.Join(dataDir, "admin.token")
	text, err := readToken(path)
	if err != nil {
		return "", err
	}
	fresh := text == ""
	if fresh {
		text = userstore.NewTokenText()
	}
	var t userstore.Token
	var created bool
	err = db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		user, err := userstore.In(tx).EnsureUser(ctx, adminName, userstore.RoleAdmin)
		if err != nil {
			return err
		}
		t, created, err = userstore.In(tx).EnsureToken(ctx, text, userstore.TokenSpec{User: user, Name: "admin.token", Scopes: []string{"*"}})
		if err != nil || !created {
			return err
		}
		return tx.Audit(ctx, "pawl", "token.create", t.ID, map[string]string{"name": t.Name})
	})
	if err != nil {
		return "", fmt.Errorf("make admin token: %w", err)
	}
	if !t.RevokedAt.IsZero() {
		log.Warn("the token in admin.token was revoked; remove the file to get a new one at the next start", "path", path)
	}
	if !fresh {
		return path, nil
	}
	// The row comes first: a crash in between leaves a token that nobody has,
	// not a file that does not work.
	return path, writeToken(path, text)
}

func readToken(path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read admin token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// writeToken puts the file in place whole, readable by its owner only.
func writeToken(path, text string) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(text+"\n"), 0o600); err != nil {
		return fmt.Errorf("write admin token: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("write admin token: %w", err)
	}
	return nil
}
