package store

// What the tests of the rooms use of those of the kernel.
var (
	AtForTest        = at
	BothForTest      = both
	CountForTest     = count
	EnqueueForTest   = enqueue
	ErrBoomForTest   = errBoom
	MustWriteForTest = mustWrite
	OpenForTest      = open
	SqliteURLForTest = sqliteURL
)

// PageWindows is how many windows a page goes through.
const PageWindows = pageWindows
