// Package workflowstore is the room of the store for workflows: their versions,
// handler states, producers' schedules, rights and repairs.
package workflowstore
