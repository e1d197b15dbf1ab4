package file

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/tool/connector"
)

// The faults in paths that no system call reports.
var (
	errLink    = errors.New("it is a link")
	errSpecial = errors.New("it is neither a file nor a folder")
)

// logicFault is a call that cannot work, however often it is made.
func logicFault(code, hint, format string, values ...any) *connector.Error {
	return &connector.Error{Class: pawl.ClassLogic, Code: code, Hint: hint, NotApplied: true, Msg: fmt.Sprintf(format, values...)}
}

// interrupted is a call that was told to stop before it had any effect.
func interrupted(cause error) *connector.Error {
	return &connector.Error{Class: pawl.ClassTransient, Code: "interrupted", NotApplied: true, Msg: "the call was cancelled before it began", Err: cause}
}

// pathFault is what went wrong with the file or folder that a script named.
func pathFault(err error, doing, path string) *connector.Error {
	doing += " " + pawl.Quote(path)
	if own, ok := errors.AsType[*connector.Error](err); ok {
		return own
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return logicFault("not_found", "list shows what is there.", "%s: there is no such file or folder", doing)
	case errors.Is(err, errLink):
		return logicFault("bad_path", "Links are not followed; use the path that the link points to.", "%s: it is a link, or leads through one", doing)
	case errors.Is(err, errSpecial):
		return logicFault("bad_path", "", "%s: it is a pipe, a device or something else that is not a file", doing)
	case errors.Is(err, syscall.EISDIR):
		return logicFault("not_a_file", "", "%s: it is a folder", doing)
	case errors.Is(err, syscall.ENOTDIR):
		return logicFault("not_a_folder", "", "%s: it is a file, or leads through one", doing)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return logicFault("bad_path", "", "%s: the name is too long for this disk", doing)
	case errors.Is(err, syscall.EFBIG):
		return logicFault("too_large", "", "%s: the file is as large as this disk allows", doing)
	}
	return systemFault(err, doing)
}

// bookFault is what went wrong with the bookkeeping.
func bookFault(err error) *connector.Error {
	return systemFault(err, "keep the record of the call")
}

// systemFault classifies an error of the system that is not about what the
// script asked for. The cause is the bare reason: paths of the host are not
// for those who read about calls.
func systemFault(err error, doing string) *connector.Error {
	if own, ok := errors.AsType[*connector.Error](err); ok {
		return own
	}
	class, code, msg, hint := pawl.ClassInternal, "internal", "it did not work", ""
	number, _ := errors.AsType[syscall.Errno](err)
	switch number {
	case syscall.EACCES, syscall.EPERM, syscall.EROFS:
		class, code, msg, hint = pawl.ClassPermission, "no_access", "access is denied", "Give Pawl the right to use the folder and what is in it."
	case syscall.ENOSPC, syscall.EDQUOT:
		class, code, msg, hint = pawl.ClassTransient, "disk_full", "the disk is full", "Free some space."
	case syscall.EIO:
		class, code, msg = pawl.ClassTransient, "disk_fault", "the disk reports a fault"
	case syscall.EAGAIN, syscall.EBUSY, syscall.EINTR, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOLCK, syscall.ESTALE, syscall.ETIMEDOUT, syscall.ETXTBSY:
		class, code, msg = pawl.ClassTransient, "unavailable", "it cannot be done at the moment"
	case syscall.EXDEV:
		class, code, msg, hint = pawl.ClassPrecondition, "other_disk", "this part of the folder is on another disk", "Give it a connection of its own."
	default: // nothing that is known to happen: a fault of Pawl
	}
	return &connector.Error{Class: class, Code: code, Msg: doing + ": " + msg, Hint: hint, NotApplied: true, Err: bare(err)}
}

// bare is the reason in an error, without the paths around it.
func bare(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return connector.Reason(err)
}

// refused reports whether the system refused outright, which says that the
// call had no effect at all. Any other error may come after one.
func refused(err error) bool {
	number, _ := errors.AsType[syscall.Errno](err)
	switch number {
	case syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG,
		syscall.EXDEV, syscall.EISDIR, syscall.ENOTDIR, syscall.EEXIST, syscall.ENOTEMPTY:
		return true
	default:
		return false
	}
}
