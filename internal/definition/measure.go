package definition

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/when"
)

// Size is a number of bytes, which may be written with a unit, such as 512KiB.
type Size int64

func (d decoder) size(n *node, into reflect.Value, pointer string) {
	if size, ok := ParseSize(n.written()); ok {
		into.SetInt(size)
		return
	}
	d.refuse(n, pointer, "%s %s is not a size such as 512KiB or 4MiB", last(pointer), pawl.Quote(n.written()))
}

func (d decoder) duration(n *node, into reflect.Value, pointer string) {
	length, err := time.ParseDuration(n.written())
	if err != nil {
		d.refuse(n, pointer, "%s %s is not a length of time such as 30s or 2m", last(pointer), pawl.Quote(n.written()))
		return
	}
	into.SetInt(int64(length))
}

// seconds are a number that is written as a length of time.
func (d decoder) seconds(n *node, into reflect.Value, pointer string) {
	length, err := when.ParseInterval(n.meant())
	if err != nil {
		d.refuse(n, pointer, "%s %s is neither a number of seconds nor a length of time such as 90s or 5m", last(pointer), pawl.Quote(n.meant()))
		return
	}
	into.SetInt(int64(length / time.Second))
}

// ParseSize reads a number of bytes such as 65536, 512KiB or 64kB.
func ParseSize(text string) (size int64, ok bool) {
	unit := strings.TrimLeft(text, "0123456789")
	factor, known := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9}[strings.TrimSpace(unit)]
	n, err := strconv.ParseInt(strings.TrimSuffix(text, unit), 10, 64)
	if err != nil || !known || n > math.MaxInt64/factor {
		return 0, false
	}
	return n * factor, true
}
