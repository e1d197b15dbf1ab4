package store

// What the tests of the rooms need of the kernel's.
const PageWindows = pageWindows
