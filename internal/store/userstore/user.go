package userstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/store"
)

// Role is the most that a user may do, whatever a token says.
type Role string

// The closed set of roles. Each includes the one before it.
const (
	RoleViewer   Role = "viewer"   // looks
	RoleOperator Role = "operator" // looks and changes
	RoleAdmin    Role = "admin"    // and decides who else may
)

// User is somebody who may ask.
type User struct {
	ID        string
	Name      string
	Role      Role
	CreatedAt time.Time
}

// EnsureUser returns the user of that name, who is added with the given role
// if there is none yet. The role of one who is there stays as it is.
func (tx Tx) EnsureUser(ctx context.Context, name string, role Role) (User, error) {
	_, err := tx.Exec(ctx, `insert into users (id, name, role, created_at) values ($1, $2, $3, $4) on conflict (name) do nothing`,
		store.NewID(), name, string(role), store.Millis(tx.Now))
	if err != nil {
		return User{}, fmt.Errorf("add user: %w", err)
	}
	return tx.UserByName(ctx, name)
}

// UserByName returns a user, or pawl.ErrNotFound.
func (tx Tx) UserByName(ctx context.Context, name string) (User, error) {
	u := User{Name: name}
	var role string
	var created int64
	err := tx.QueryRow(ctx, `select id, role, created_at from users where name = $1`, name).Scan(&u.ID, &role, &created)
	if errors.Is(err, store.ErrNoRow) {
		return u, &pawl.Error{Code: pawl.CodeNotFound, Op: "find user", Msg: fmt.Sprintf("there is no user %q", name)}
	}
	if err != nil {
		return u, fmt.Errorf("find user: %w", err)
	}
	u.Role, u.CreatedAt = Role(role), store.FromMillis(created)
	return u, nil
}

// ListUsers reads up to limit users by name, those after the given one.
func (tx Tx) ListUsers(ctx context.Context, after string, limit int) ([]User, error) {
	rows, err := tx.Query(ctx, `select id, name, role, created_at from users where name > $1 order by name limit $2`, after, limit)
	return store.ScanAll(rows, err, "list users", func(row store.Scanner) (u User, err error) {
		var role string
		var created int64
		err = row.Scan(&u.ID, &u.Name, &role, &created)
		u.Role, u.CreatedAt = Role(role), store.FromMillis(created)
		return u, err
	})
}
