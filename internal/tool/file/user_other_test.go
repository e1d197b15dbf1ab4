//go:build !linux

package file

import (
	"os"
	"testing"
)

// asOrdinaryUser runs an action as a user to whom permissions apply.
func asOrdinaryUser(t *testing.T, _ string, action func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Fatal("run the tests as an ordinary user: permissions do not apply to root")
	}
	action()
}
