package script

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wipeAtOnce is from how many words on memory is given back to the system, which
// gives zeros when it is touched again.
const wipeAtOnce = 64 << 10

// newPages takes memory from the system. It is outside of Go's heap, so that the
// garbage collector does not pace itself by it; what is never touched costs
// nothing.
func newPages(bytes int64) ([]uint64, error) {
	pages, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("take %d bytes of memory: %w", bytes, err)
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(pages))), bytes/8), nil
}

// wipe makes memory of newPages zero.
func wipe(words []uint64) {
	if len(words) < wipeAtOnce {
		clear(words)
		return
	}
	page := uintptr(os.Getpagesize())
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(words)))
	first := (page - begin%page) % page / 8
	whole := (uintptr(len(words)) - first) / (page / 8) * (page / 8)
	clear(words[:first])
	clear(words[first+whole:])
	middle := words[first : first+whole]
	if unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(middle))), len(middle)*8), unix.MADV_DONTNEED) != nil {
		clear(middle)
	}
}
