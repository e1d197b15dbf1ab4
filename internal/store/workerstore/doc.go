// Package workerstore is the room of tasks that programs of users serve. Their
// jobs are in the table of jobs; see store.ClaimJobs.
package workerstore
