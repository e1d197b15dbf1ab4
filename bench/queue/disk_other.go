//go:build !linux

package main

import "io"

// warnMemoryDisk knows only Linux's file systems.
func warnMemoryDisk(string, io.Writer) {}
