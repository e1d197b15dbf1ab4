package script

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// archCalls are calls that only this processor has.
func archCalls() []uintptr { return nil }
