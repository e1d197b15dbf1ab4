// Package eventstore is the room of the store for events, the topics they are
// published to and the inputs they come from.
package eventstore
