// Package contract holds the named types that server, worker and command line
// share when they speak about schedules and runs of graphs. Both ends of every
// call use these, so that a field cannot have one name for its writer and
// another for its reader.
//
// The types of a request or answer carry a version. A field may be added to a
// version; what is renamed, removed or means something else is a new version.
package contract
