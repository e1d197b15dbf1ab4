package runstore

import "strings"

// PartLane is the lane of a partition of a workflow: that of the workflow, a slash and
// an id of 24 characters. No other lane of a workflow has a slash.
func PartLane(lane, id string) string { return lane + "/" + id }

// BaseLane is the lane of the workflow that a lane of one of its partitions belongs
// to, and the id of that; any other lane is its own.
func BaseLane(lane string) (base, part string) {
	base, part, _ = strings.Cut(lane, "/")
	return base, part
}

// PartCause begins the cause of a workflow's attention that comes from one of its
// partitions.
const PartCause = "partition "

// Lanes of partitions, spelled like the index runs_part.
const (
	isPart     = "kind = 'workflow' and substr(lane, length(lane) - 24, 1) = '/'"
	baseOfPart = "substr(lane, 1, length(lane) - 25)" // the slash and the id
)
