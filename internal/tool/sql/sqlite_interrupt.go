package sqltool

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"sync"

	sqlite3 "modernc.org/sqlite/lib"
)

// interruptWith makes SQLite stop when ctx ends. The driver does so itself only
// until a statement has its first row; a statement can take for ever to find
// its second. Release must be called before the connection is closed.
func interruptWith(ctx context.Context, conn *sql.Conn) (release func(), err error) {
	var handle uintptr
	err = conn.Raw(func(raw any) error {
		// The driver keeps the handle to itself.
		field := reflect.Indirect(reflect.ValueOf(raw)).FieldByName("db")
		if field.Kind() != reflect.Uintptr || field.Uint() == 0 {
			return errors.New("the driver has no handle called db")
		}
		handle = uintptr(field.Uint())
		return nil
	})
	if err != nil {
		return nil, err
	}
	var stopping sync.WaitGroup
	stopping.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer stopping.Done()
		sqlite3.Xsqlite3_interrupt(nil, handle) // it sets a flag, for which it needs no thread
	})
	return func() {
		if !stop() {
			stopping.Wait()
		}
	}, nil
}
