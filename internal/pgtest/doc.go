// Package pgtest gives tests a real PostgreSQL.
//
// URL answers with a database of a test's own. It lives on the server that
// PAWL_TEST_POSTGRES names, or, when that is unset, on a private cluster that
// this process starts on first use. NewServer gives a test a cluster of its
// own, to stop, kill and start again. Both runs one test on SQLite and on
// PostgreSQL.
//
// Databases are empty, or prepared: package migrated prepares them with Pawl's
// tables. A prepared database is made once and emptied for the next test, which
// is ten times cheaper; one whose tables a test changed is thrown away.
//
// The cluster behind URL does not wait for the disk (NewFastCluster); one of
// NewServer or NewCluster does, as a real one. Each listens on 127.0.0.1 only
// and lives in a temporary folder. It never outlives its
// process: a watcher holds the read end of a pipe whose write end only this
// process has, so that any death of the process, kill -9 included, ends the
// pipe, on which the watcher stops PostgreSQL and removes the folder.
//
// A machine without PostgreSQL fails the test, with the command that installs
// it: a skipped test would say nothing about the database most people use. Only
// who sets PAWL_TEST_POSTGRES to none, as make quick does, leaves these tests out.
package pgtest
