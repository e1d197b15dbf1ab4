package file

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// lstat is what is at a path, without following links: neither at its end
// nor on the way.
func lstat(root *os.Root, name string) (fs.FileInfo, error) {
	for i, c := range name {
		if c != '/' {
			continue
		}
		info, err := root.Lstat(name[:i])
		switch {
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, errLink
		case !info.IsDir():
			return nil, syscall.ENOTDIR
		}
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil, errSpecial
	}
	return info, nil
}

// openFile opens a regular file. Should the path become something else
// between looking and opening, opening does not block on it.
func openFile(root *os.Root, name string, flag int) (*os.File, fs.FileInfo, error) {
	info, err := lstat(root, name)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return nil, nil, syscall.EISDIR
	}
	file, err := root.OpenFile(name, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errSpecial
	}
	if err != nil {
		_ = file.Close() // it was not used
		return nil, nil, err
	}
	return file, info, nil
}

// makeParents creates the folders above a path, durably.
func makeParents(root *os.Root, name string) error {
	parent, made := path.Dir(name), ""
	if parent == "." {
		return nil
	}
	for part := range strings.SplitSeq(parent, "/") {
		made = path.Join(made, part)
		info, err := lstat(root, made)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = makeFolder(root, made, 0o755)
		case err == nil && !info.IsDir():
			err = syscall.ENOTDIR
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeFolder creates a folder durably, unless there is something by that name.
func makeFolder(root *os.Root, name string, mode fs.FileMode) error {
	err := root.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncFolder(root, path.Dir(name))
}

// syncFolder makes the names in a folder durable.
func syncFolder(root *os.Root, name string) error {
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // nothing is written through it
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // a disk that keeps names in order by itself
	}
	return err
}

// inode is the number of a file that stays the same when it is renamed.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}
