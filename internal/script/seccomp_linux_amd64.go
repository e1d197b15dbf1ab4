package script

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// archCalls are calls that only this processor has. The numbers of x32 have a
// high bit and match none.
func archCalls() []uintptr { return []uintptr{unix.SYS_EPOLL_WAIT, unix.SYS_ARCH_PRCTL} }
