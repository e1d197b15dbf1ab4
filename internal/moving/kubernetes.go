package moving

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	pawl "github.com/pawlrun/pawl"
	"github.com/pawlrun/pawl/internal/definition"
)

// cronJob is what is read of a manifest.
type cronJob struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Schedule                string `json:"schedule"`
		TimeZone                string `json:"timeZone"`
		ConcurrencyPolicy       string `json:"concurrencyPolicy"`
		Suspend                 bool   `json:"suspend"`
		StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds"`
		JobTemplate             struct {
			Spec struct {
				ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds"`
				BackoffLimit          *int64 `json:"backoffLimit"`
				Template              struct {
					Spec struct {
						Containers     []container `json:"containers"`
						InitContainers []any       `json:"initContainers"`
						Volumes        []any       `json:"volumes"`
						ServiceAccount string      `json:"serviceAccountName"`
					} `json:"spec"`
				} `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
}

type container struct {
	Name    string   `json:"name"`
	Image   string   `json:"image"`
	Command []string `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name      string `json:"name"`
		Value     string `json:"value"`
		ValueFrom any    `json:"valueFrom"`
	} `json:"env"`
	EnvFrom []any `json:"envFrom"`
}

// Kubernetes reads the CronJobs of a manifest. Its containers become commands of
// docker run, because a server runs programs and no images.
func Kubernetes(text string, o Options) Result {
	var r Result
	docs, err := definition.Read("manifest", []byte(text))
	for _, fault := range definition.FieldsOf(err) {
		r.lose(fmt.Sprintf("line %d", fault.Line), "", fault.Message)
	}
	if err != nil && len(r.Lost) == 0 {
		r.lose("the file", "", messageOf(err))
	}
	for _, doc := range docs {
		from := fmt.Sprintf("line %d", doc.Place("").Line)
		var job cronJob
		if doc.Kind != "CronJob" {
			r.lose(from, "kind: "+doc.Kind, "it is not a CronJob")
		} else if err := json.Unmarshal(doc.JSON(), &job); err != nil {
			r.lose(from, "", "it is not read: "+clip(err.Error(), 200))
		} else {
			readCronJob(&r, &job, o)
		}
	}
	r.name()
	return r
}

func readCronJob(r *Result, job *cronJob, o Options) {
	spec := &job.Spec
	from := "CronJob " + printable(clip(job.Metadata.Name, 100))
	s := Schedule{Name: nameOf(job.Metadata.Name), From: from, Text: spec.Schedule, Cron: []string{spec.Schedule}, Timezone: spec.TimeZone, Suspended: spec.Suspend}
	if zone, rest, ok := strings.Cut(spec.Schedule, " "); ok && (strings.HasPrefix(zone, "CRON_TZ=") || strings.HasPrefix(zone, "TZ=")) {
		s.Timezone, s.Cron = zone[strings.IndexByte(zone, '=')+1:], []string{rest}
	} else if s.Timezone == "" {
		s.Notes = append(s.Notes, "it names no time zone: Kubernetes takes that of its controller, mostly UTC")
	}
	switch policy := pawl.ConcurrencyPolicy(spec.ConcurrencyPolicy); policy {
	case "":
		s.Policy = pawl.PolicyAllow
	case pawl.PolicyAllow, pawl.PolicyForbid, pawl.PolicyReplace:
		s.Policy = policy
	default:
		r.lose(from, "concurrencyPolicy: "+spec.ConcurrencyPolicy, "it is not known")
		return
	}
	if d := spec.StartingDeadlineSeconds; d != nil && *d > 0 && *d < 1<<31 {
		s.Missed, s.Within = "last", time.Duration(*d)*time.Second
	}
	if d := spec.JobTemplate.Spec.ActiveDeadlineSeconds; d != nil && *d > 0 && *d < 1<<31 {
		s.Timeout = time.Duration(*d) * time.Second
	}
	if n := spec.JobTemplate.Spec.BackoffLimit; n == nil {
		s.Notes = append(s.Notes, "Kubernetes tries a failed job again six times; Pawl does not unless retry: says so")
	} else if *n > 0 && *n < 100 {
		s.Attempts = *n + 1
	}
	pod := &spec.JobTemplate.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		r.lose(from, spec.Schedule, fmt.Sprintf("it has %d containers; one can be carried over", len(pod.Containers)))
		return
	}
	if len(pod.InitContainers)+len(pod.Volumes) > 0 || pod.ServiceAccount != "" {
		s.Notes = append(s.Notes, "its volumes, init containers and service account are not carried over")
	}
	c := &pod.Containers[0]
	if c.Image == "" {
		r.lose(from, spec.Schedule, "its container has no image")
		return
	}
	s.Command = []string{"docker", "run", "--rm"}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			s.Notes = append(s.Notes, fmt.Sprintf("the variable %s comes from a secret or a config map: set it in the environment of the server", printable(e.Name)))
			s.Command = append(s.Command, "-e", e.Name)
			continue
		}
		s.Command = append(s.Command, "-e", e.Name+"="+e.Value)
	}
	if len(c.EnvFrom) > 0 {
		s.Notes = append(s.Notes, "envFrom is not carried over")
	}
	if len(c.Command) > 0 {
		s.Command = append(s.Command, "--entrypoint", c.Command[0])
	}
	s.Command = append(s.Command, c.Image)
	if len(c.Command) > 1 {
		s.Command = append(s.Command, c.Command[1:]...)
	}
	s.Command = append(s.Command, c.Args...)
	s.Notes = append(s.Notes, "its container runs with docker on the machine of the server")
	r.add(s, o.Now)
}
