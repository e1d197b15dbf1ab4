package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// graphile is Graphile Worker by its functions in SQL. Nothing of it runs but its
// program that makes them, which npm has put into node/node_modules.
type graphile struct{}

// errNoGraphile: it is left out of the report.
var errNoGraphile = errors.New("npm ci in the folder node was not run")

func (*graphile) open(ctx context.Context, at string) (string, error) {
	program, err := filepath.Abs(filepath.Join("node", "node_modules", ".bin", "graphile-worker"))
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath(program); err != nil {
		return "", errNoGraphile
	}
	if out, err := exec.CommandContext(ctx, program, "--schema-only", "--connection", at).CombinedOutput(); err != nil {
		return "", fmt.Errorf("make its schema: %w: %s", err, out)
	}
	return at, nil
}

func (*graphile) close() {}

func (*graphile) add(ctx context.Context, tx pgx.Tx, first int64, n int) error {
	if n == 1 {
		raw, err := json.Marshal(newPayload(first))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `select graphile_worker.add_job('bench', $1::json)`, string(raw))
		return err
	}
	texts := make([]string, n)
	for i := range texts {
		raw, err := json.Marshal(newPayload(first + int64(i)))
		if err != nil {
			return err
		}
		texts[i] = string(raw)
	}
	_, err := tx.Exec(ctx, `select graphile_worker.add_jobs(array(
		select json_populate_record(null::graphile_worker.job_spec, json_build_object('identifier', 'bench', 'payload', p::json)) from unnest($1::text[]) p))`, texts)
	return err
}
