// Package quotastore is the room of the store for rate limits that nodes share.
package quotastore
