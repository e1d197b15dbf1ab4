// Package cli is the command line. A command reads its settings, talks to a
// server over HTTP (or is one, as serve and demo are), and writes data to
// stdout and talk to stderr.
//
// The process is a value (Process), so that tests run commands in-process and
// look at what they wrote and how they ended. There is a file per command.
// Settings are defined once, in settings.go, from which come flags,
// environment variables, keys of the config file, defaults and help.
//
// Exit codes are those of the root package: 0 done, 1 failed, 2 usage, 3 not
// found, 4 refused, 5 not allowed, 6 server unreachable.
package cli
