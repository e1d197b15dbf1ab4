package api

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlrun/pawl/internal/store"
	"github.com/pawlrun/pawl/internal/store/userstore"
)

func TestBackupIsAWholeCopyForAdministratorsOnly(t *testing.T) {
	r := newRig(t, "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"))
	j := r.enqueue(map[string]any{"task": "echo", "delay": "1h"})
	r.as(r.token("operator", userstore.RoleOperator, "*"), "POST", "/api/v1/backup", nil).problem(http.StatusForbidden, "forbidden")
	p := r.do("POST", "/api/v1/backup", nil).want(http.StatusOK)
	if p.header.Get("Content-Type") != backupType || p.header.Get("Content-Length") != strconv.Itoa(len(p.body)) {
		t.Errorf("headers %v for %d bytes", p.header, len(p.body))
	}
	r.audited("database.backup", "database")
	copied := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(copied, p.body, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CheckFile(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), "sqlite:"+copied, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // only read
	jobs, _, err := db.ListJobs(t.Context(), store.JobFilter{}, 0, 10)
	if err != nil || len(jobs) != 1 || strconv.FormatInt(jobs[0].ID, 10) != j.ID {
		t.Errorf("%+v, %v", jobs, err)
	}
}

func TestBackupOfPostgresNamesTheTool(t *testing.T) {
	both(t, func(r *rig) {
		if !r.db.Shared() {
			return
		}
		if p := r.do("POST", "/api/v1/backup", nil).problem(http.StatusUnprocessableEntity, "invalid"); !strings.Contains(p.Hint, "pg_dump --format=custom") {
			t.Errorf("%+v", p)
		}
	})
}
