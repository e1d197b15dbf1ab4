package file

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asOrdinaryUser runs an action as a user to whom permissions apply and who
// owns the folder: root is nobody meanwhile, on this thread.
func asOrdinaryUser(t *testing.T, dir string, action func()) {
	t.Helper()
	const nobody = 65534
	if os.Geteuid() != 0 {
		action()
		return
	}
	give := func(name string) {
		if err := os.Chown(name, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	give(filepath.Dir(dir))
	give(filepath.Dir(filepath.Dir(dir)))
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		give(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setfsuid(0) }() // it was 0
	action()
}
