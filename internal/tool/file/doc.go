// Package file is the connector of a folder. Scripts read, list, append to and
// write files in it, and nothing outside of it.
//
// # What a script can reach
//
// All access goes through os.Root, so no path leads out of the folder. On top
// of that, paths with .., absolute paths, control characters and other traps
// are refused before anything is touched; links are never followed; pipes,
// devices and other special files are refused without being opened; and the
// folder .pawl, in which the bookkeeping below is kept, neither shows up nor
// can be named, at any depth and in any spelling.
//
// # Exactly once
//
// A process may be killed between any two system calls. Whoever asks
// afterwards, by the key of the call, gets the truth:
//
//	.pawl/lock          flock: one mutation at a time in a folder, for all processes
//	.pawl/stage/        files being made; garbage unless a call of the same name is open
//	.pawl/calls/DIGEST  an open call: what is about to be done
//	.pawl/done          finished calls, one line each
//
// DIGEST is derived from the key. A mutation holds the lock from its first
// step to its last:
//
//  1. Settle every open call. Its process is dead or gave up, because the lock
//     was free.
//  2. Look the key up in done: if it is there, answer what was recorded.
//  3. append: open the file, or create it empty, durably. Its length is the
//     offset. write: make the new content in stage, durably.
//  4. Make the call open: a file in calls, complete and durable, because it is
//     synced in stage first and then renamed.
//  5. The effect. append: one write at the end of the file, sync. write: rename
//     the content from stage over the file, sync the folder.
//  6. Add the line to done, durably.
//  7. Remove the call from calls. It does not matter if this is lost: step 1
//     looks into done first.
//
// Nothing is undone when a step fails. The call stays open as it is, and the
// next mutation or Reconcile settles it. So there is one piece of code that
// cleans up, whether after an error or after a crash.
//
// # Settling an open append
//
// The open call has the file's inode, the offset and the bytes. As no mutation
// begins before all open calls are settled, the file is as the crash left it,
// and the end of the file tells:
//
//	file ends at the offset                     not applied
//	file goes on with a part of the bytes       not applied: cut back to the offset
//	file goes on with all of the bytes          applied
//	anything else                               lost
//
// "Anything else" is the work of other programs: the file was moved away,
// replaced, shortened, or written to between the crash and now. Whether the
// bytes had been there cannot be told any more, and a guess in either direction
// would be a lost line or a double one. Lost is recorded in done; Reconcile
// answers Later, until a person decides. (Another program that cuts the file
// back to exactly the offset in just that moment is not noticed.)
//
// The file is created before the call is open, so that a file that is missing
// is one that was taken away. If the append is not applied, the new file stays,
// empty.
//
// # Settling an open write
//
// Renaming takes the content out of stage, and nothing else does while the call
// is open. So content still in stage means not applied, and content gone means
// applied, whatever other programs did to the file meanwhile. The order
// matters: the call is removed, durably, before the content is.
//
// The content is made in stage instead of beside the file, so that neither
// scripts nor programs that watch the folder ever see it. A part of the folder
// on another disk can be appended to but not written.
//
// # Reconcile
//
// Reconcile takes the lock, settles, and looks the key up in done. If it is not
// there the call did not happen, and to keep it so the key is recorded as
// withdrawn before the answer is given: should the call still be on its way, in
// a process that was stopped for a while, it will be refused. If .pawl is gone,
// so is all evidence, and the answer is an error, which means Later.
//
// # Bounds
//
// calls is empty between mutations, but for what a failing disk keeps from
// being settled; until then, mutations of the folder are refused. done is cut
// to its newer half when it reaches 2 MiB, so at least the last 11,000 calls
// are known. The host asks within minutes of a call, or after a crash that
// ended its calls.
//
// # Other programs
//
// They may read and change the files at any time; only within a crash can they
// make an outcome unclear, as told above. Appends of theirs are not overwritten,
// for the effect of append is a write at the end, wherever that is by then.
// Two connections whose folders lie within each other are other programs to one
// another; two connections to the same folder are not.
//
// Reads take no lock: a file that is being appended to may be seen with a part
// of the new bytes, a written one is seen before or after.
package file
