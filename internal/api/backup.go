package api

import (
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawlrun/pawl/internal/store"
)

// backup answers with a copy of the database as it is at one instant. The copy
// is made before the first byte is sent, so that a slow reader holds nobody up.
func (a *API) backup(ctx context.Context, _ *CheckedHeader) (*streamOutput, error) {
	if err := a.check(ctx, nil); err != nil {
		return nil, err
	}
	if a.db.Shared() { // says what to do instead, and leaves no trace
		_, err := a.db.Backup(ctx)
		return nil, err
	}
	who := actor(callOf(ctx).token)
	err := a.db.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		return tx.Audit(ctx, who, "database.backup", "database", nil)
	})
	if err != nil {
		return nil, err
	}
	file, err := a.db.Backup(ctx)
	if err != nil {
		return nil, err
	}
	return &streamOutput{func(ctx huma.Context) {
		defer file.Close() //nolint:errcheck // it was read
		_, w := humago.Unwrap(ctx)
		a.sendFile(w, file)
	}}, nil
}

func (a *API) sendFile(w http.ResponseWriter, file *os.File) {
	info, err := file.Stat()
	if err != nil {
		panic(err) // answered as any other fault
	}
	h := w.Header()
	h.Set("Content-Type", backupType)
	h.Set("Content-Disposition", `attachment; filename="pawl.db"`)
	// With its length told, a copy that was cut off is not taken for whole.
	h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	for left := info.Size(); left > 0; {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // where there is a connection
		n, err := io.CopyN(w, file, min(left, backupChunk))
		if left -= n; err != nil {
			panic(http.ErrAbortHandler) // the reader is gone, or must not think that this was all
		}
	}
}

const (
	backupType  = "application/vnd.sqlite3"
	backupChunk = 1 << 20 // bytes that must get through within writeTimeout
)
