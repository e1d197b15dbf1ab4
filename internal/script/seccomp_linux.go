//go:build linux && (amd64 || arm64)

package script

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filterCalls lets the process make the system calls that a Go program needs
// to compute and to talk over open pipes, and no others: those fail with
// EPERM. It holds for all threads and cannot be undone.
func filterCalls() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The kernel copies this to the other threads together with the filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	filter := callFilter(uint32(os.Getpid()))
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("install the filter: %w", errno)
	}
	return nil
}

// Offsets in struct seccomp_data. Both processors are little-endian, so the
// low half of an argument comes first.
const (
	dataNr   = 0
	dataArch = 4
	dataArgs = 16
)

// callFilter builds the BPF program.
func callFilter(pid uint32) []unix.SockFilter {
	allow := uint32(unix.SECCOMP_RET_ALLOW)
	refuse := unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	f := []unix.SockFilter{
		load(dataArch),
		// Another architecture has other numbers: that is an attack.
		jumpEqual(auditArch, 1, 0),
		answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(dataNr),
	}
	for _, nr := range append(commonCalls(), archCalls()...) {
		f = append(f, jumpEqual(uint32(nr), 0, 1), answer(allow))
	}
	// Threads, but no processes.
	f = append(f, onCall(unix.SYS_CLONE, load(dataArgs), jumpSet(unix.CLONE_THREAD, 0, 1), answer(allow), answer(refuse))...)
	// The C library then uses clone, whose arguments can be checked.
	f = append(f, onCall(unix.SYS_CLONE3, answer(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)))...)
	// Memory, but no new code.
	for _, nr := range []uint32{unix.SYS_MMAP, unix.SYS_MPROTECT} {
		f = append(f, onCall(nr, load(dataArgs+2*8), jumpSet(unix.PROT_EXEC, 0, 1), answer(refuse), answer(allow))...)
	}
	// Signals to itself, with which Go preempts; the server has the same user.
	f = append(f, onCall(unix.SYS_TGKILL, load(dataArgs), jumpEqual(pid, 0, 1), answer(allow), answer(refuse))...)
	// Go names its memory where the kernel can; this says that it cannot.
	f = append(f, onCall(unix.SYS_PRCTL, answer(unix.SECCOMP_RET_ERRNO|uint32(unix.EINVAL)))...)
	return append(f, answer(refuse))
}

// onCall runs rules, which end with an answer, for one system call. The number
// is loaded before and after.
func onCall(nr uint32, rules ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{jumpEqual(nr, 0, uint8(len(rules)))}, rules...)
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jumpEqual skips yes rules when the loaded word is k, and no rules otherwise.
func jumpEqual(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

// jumpSet is jumpEqual for a word that has any bit of k.
func jumpSet(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jt: yes, Jf: no, K: k}
}

func answer(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// commonCalls are what the Go runtime, the C library under the race detector,
// and the pipes need.
func commonCalls() []uintptr {
	return []uintptr{
		unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_CLOSE,
		unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
		unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRUSAGE, unix.SYS_GETRANDOM,
		unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
		unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_SCHED_GETAFFINITY,
		unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_RESTART_SYSCALL,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
		unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	}
}
