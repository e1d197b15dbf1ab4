package simulate

import (
	"fmt"
	"os"
	"testing"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// TestMain tells SQLite that one goroutine at a time uses it, which is so: a
// history has one turn at the database, and histories follow each other. Otherwise
// a tenth of the time goes into locks for which nobody waits.
func TestMain(m *testing.M) {
	tls := libc.NewTLS()
	args := libc.Xmalloc(tls, 8)
	for option, value := range map[int32]int32{sqlite3.SQLITE_CONFIG_SINGLETHREAD: 0, sqlite3.SQLITE_CONFIG_MEMSTATUS: 0} {
		if rc := sqlite3.Xsqlite3_config(tls, option, libc.VaList(args, value)); rc != sqlite3.SQLITE_OK {
			_, _ = fmt.Fprintf(os.Stderr, "SQLite does not take option %d: it answers %d\n", option, rc)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}
