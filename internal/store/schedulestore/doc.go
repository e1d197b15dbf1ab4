// Package schedulestore is the room of the store for schedules, their slots and
// backfills.
package schedulestore
