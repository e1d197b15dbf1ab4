package hookstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Hook is a definition under its name.
type Hook struct {
	Name       string
	Definition json.RawMessage
	Version    string // SHA-256 of the definition
	Owner      string // the id of the user in whose name it acts
	CreatedAt  time.Time
	UpdatedAt  time.Time
	UpdatedBy  string
}

const hookColumns = `name, definition, version, owner, created_at, updated_at, updated_by`

func scanHook(row store.Scanner) (Hook, error) {
	var h Hook
	var definition string
	var created, updated int64
	if err := row.Scan(&h.Name, &definition, &h.Version, &h.Owner, &created, &updated, &h.UpdatedBy); err != nil {
		return Hook{}, err
	}
	h.Definition, h.CreatedAt, h.UpdatedAt = json.RawMessage(definition), store.FromMillis(created), store.FromMillis(updated)
	return h, nil
}

func noHook(err error, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoRow):
		return &pawl.Error{Code: pawl.CodeNotFound, Op: "read hook", Msg: fmt.Sprintf("there is no hook %q", name), Hint: "pawl get hooks lists them."}
	}
	return fmt.Errorf("read hook: %w", err)
}

// HookByName reads a hook, or fails with pawl.ErrNotFound.
func (tx Tx) HookByName(ctx context.Context, name string) (Hook, error) {
	h, err := scanHook(tx.QueryRow(ctx, `select `+hookColumns+` from hooks where name = $1`, name))
	return h, noHook(err, name)
}

// HoldHook reads a hook and keeps others from changing its row until the
// transaction ends.
func (tx Tx) HoldHook(ctx context.Context, name string) (Hook, error) {
	h, err := scanHook(tx.QueryRow(ctx, `select `+hookColumns+` from hooks where name = $1`+tx.ForUpdate(), name))
	return h, noHook(err, name)
}

// PutHook makes a hook, or gives the one of that name another definition and owner.
func (tx Tx) PutHook(ctx context.Context, h Hook) (Hook, error) {
	h, err := scanHook(tx.QueryRow(ctx, `insert into hooks (`+hookColumns+`) values ($1, $2, $3, $4, $5, $5, $6)
		on conflict (name) do update set definition = excluded.definition, version = excluded.version, owner = excluded.owner,
		updated_at = excluded.updated_at, updated_by = excluded.updated_by returning `+hookColumns,
		h.Name, string(h.Definition), h.Version, h.Owner, store.Millis(tx.Now), h.UpdatedBy))
	if err != nil {
		return Hook{}, fmt.Errorf("put hook: %w", err)
	}
	return h, nil
}

// DeleteHook removes a hook. What was delivered to it stays until it is old.
func (tx Tx) DeleteHook(ctx context.Context, name string) error {
	n, err := tx.Exec(ctx, `delete from hooks where name = $1`, name)
	if err == nil && n == 0 {
		err = store.ErrNoRow
	}
	return noHook(err, name)
}

// ListHooks reads up to limit hooks by name, those after the given one.
func (tx Tx) ListHooks(ctx context.Context, after string, limit int) ([]Hook, error) {
	rows, err := tx.Query(ctx, `select `+hookColumns+` from hooks where name > $1 order by name limit $2`, after, limit)
	return store.ScanAll(rows, err, "list hooks", scanHook)
}
