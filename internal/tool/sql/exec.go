package sqltool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// exec runs a statement that may change the database, once for each key.
func (d *Database) exec(ctx context.Context, c connector.Call) (json.RawMessage, error) {
	asked, err := d.parse(methodExec, c.Args)
	if err != nil {
		return nil, err
	}
	if !d.track {
		return d.apply(ctx, "", asked)
	}
	if c.Key == "" {
		return nil, &connector.Error{Class: pawl.ClassInternal, Code: "no_key", NotApplied: true, Msg: "a mutation needs an idempotency key"}
	}
	if err := d.ensureBooks(ctx); err != nil {
		return nil, err
	}
	return d.apply(ctx, c.Key, asked)
}

// apply runs the statement in a transaction and, if there is a key, records it
// there. Errors before the commit say that nothing happened.
func (d *Database) apply(ctx context.Context, key string, asked statement) (json.RawMessage, error) {
	tx, err := d.engine.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	defer tx.close(ctx)
	if key != "" {
		entry, isNew, err := d.enter(ctx, tx, key, time.Now())
		if err != nil {
			return nil, err
		}
		if !isNew {
			return entry.repeated()
		}
	}
	done, err := tx.run(ctx, asked, d.limit)
	if err != nil {
		return nil, err
	}
	result, err := done.execResult()
	if err != nil {
		return nil, err
	}
	if key != "" {
		if err := record(ctx, tx, key, result); err != nil {
			return nil, err
		}
	}
	if fault := stopped(ctx); fault != nil {
		return nil, fault
	}
	if err := tx.commit(ctx); err != nil {
		return nil, err
	}
	return result, nil
}

// Reconcile tells what became of an exec; see the package doc. Its errors say
// nothing about the call.
func (d *Database) Reconcile(ctx context.Context, c connector.Call) (connector.Answer, error) {
	if c.Method != methodExec || c.Key == "" || d.readOnly || !d.track {
		return connector.Answer{}, &connector.Error{
			Class: pawl.ClassInternal, Code: "no_key", Msg: "only an exec that was recorded can be asked about",
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	answer, err := d.lookUp(ctx, c.Key)
	if err != nil {
		told := d.report(err)
		told.NotApplied = false
		return connector.Answer{}, told
	}
	return answer, nil
}

// lookUp returns what is recorded about a call, which it withdraws if there is
// nothing.
func (d *Database) lookUp(ctx context.Context, key string) (connector.Answer, error) {
	tx, err := d.engine.begin(ctx, true)
	if err != nil {
		return connector.Answer{}, err
	}
	defer tx.close(ctx)
	entry, isNew, err := d.enter(ctx, tx, key, time.Now())
	switch {
	case err != nil:
		return connector.Answer{}, err
	case !isNew && entry.result != nil:
		return connector.Answer{State: connector.Applied, Result: entry.result}, nil
	case !isNew:
		return connector.Answer{State: connector.NotApplied}, nil
	}
	if err := tx.commit(ctx); err != nil {
		return connector.Answer{}, err
	}
	return connector.Answer{State: connector.NotApplied}, nil
}
