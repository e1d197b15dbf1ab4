package sqltool

import (
	"context"
	"errors"
	"testing"
)

// The host's own statements are one transaction: all of them or none.
func TestStatementsOfTheHostAreOneTransaction(t *testing.T) {
	both(t, func(t *testing.T, url string) {
		d := open(t, url)
		run := func(fail error) error {
			return d.Write(t.Context(), func(ctx context.Context, s Statements) error {
				if _, err := s.Exec(ctx, `create table if not exists t (n bigint)`); err != nil {
					return err
				}
				if _, err := s.Exec(ctx, `insert into t (n) values ($1), ($2)`, 1, 2); err != nil {
					return err
				}
				return fail
			})
		}
		if err := run(nil); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		if err := run(broken); !errors.Is(err, broken) {
			t.Fatalf("it failed with %v", err)
		}
		var n int
		err := d.Write(t.Context(), func(ctx context.Context, s Statements) error {
			rows, err := s.Query(ctx, `select count(*) from t where n > $1`, 0)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				if err := rows.Scan(&n); err != nil {
					return err
				}
			}
			return rows.Err()
		})
		if err != nil || n != 2 {
			t.Errorf("there are %d rows, %v; want those of the first time", n, err)
		}
	})
}
