package moving

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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
						Containers []container `json:"containers"`
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
	WorkingDir string `json:"workingDir"`
}

// takenOfCronJob are the settings that something is made of, and those that say nothing about
// what a program does: how its ends are kept, and the defaults that a cluster fills in.
func takenOfCronJob() map[string][]string {
	return map[string][]string{
		"spec":      {"schedule", "timeZone", "concurrencyPolicy", "suspend", "startingDeadlineSeconds", "jobTemplate", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"},
		"job":       {"activeDeadlineSeconds", "backoffLimit", "template", "ttlSecondsAfterFinished"},
		"pod":       {"containers", "restartPolicy", "dnsPolicy", "schedulerName", "terminationGracePeriodSeconds"},
		"container": {"name", "image", "command", "args", "env", "workingDir", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy"},
	}
}

// droppedOfCronJob are notes about the settings of a manifest that nothing was made of.
func droppedOfCronJob(raw []byte) (notes []string) {
	var m map[string]any
	_ = json.Unmarshal(raw, &m) // it was read before
	at := func(from any, path ...string) map[string]any {
		for _, name := range path {
			m, _ := from.(map[string]any)
			from = m[name]
		}
		m, _ := from.(map[string]any)
		return m
	}
	job := at(m, "spec", "jobTemplate", "spec")
	pod := at(job, "template", "spec")
	parts := []struct {
		name string
		of   map[string]any
	}{{"spec", at(m, "spec")}, {"job", job}, {"pod", pod}}
	if list, _ := pod["containers"].([]any); len(list) == 1 {
		parts = append(parts, struct {
			name string
			of   map[string]any
		}{"container", at(list[0])})
	}
	for _, part := range parts {
		for _, name := range slices.Sorted(maps.Keys(part.of)) {
			if !slices.Contains(takenOfCronJob()[part.name], name) && !empty(part.of[name]) {
				notes = append(notes, fmt.Sprintf("%s of its %s is not carried over", printable(clip(name, 100)), part.name))
			}
		}
	}
	return notes
}

// empty is whether a setting says nothing.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
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
			readCronJob(&r, &job, droppedOfCronJob(doc.JSON()), o)
		}
	}
	r.name()
	return r
}

func readCronJob(r *Result, job *cronJob, dropped []string, o Options) {
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
	s.Notes = append(s.Notes, dropped...)
	c := &pod.Containers[0]
	if c.Image == "" {
		r.lose(from, spec.Schedule, "its container has no image")
		return
	}
	s.dockerRun(c)
	s.Notes = append(s.Notes, "its container runs with docker on the machine of the server")
	r.add(s, o.Now)
}

// dockerRun makes the command that runs a container. What comes from a secret is a variable
// of the server, which a command gets only if its definition names it.
func (s *Schedule) dockerRun(c *container) {
	s.Command = []string{"docker", "run", "--rm"}
	var filled []string
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			s.Command = append(s.Command, "-e", e.Name+"="+e.Value)
			filled = append(filled, "$("+e.Name+")", e.Value)
			continue
		}
		s.Notes = append(s.Notes, fmt.Sprintf("the variable %s comes from a secret or a config map: set it in the environment of the server", printable(e.Name)))
		s.Command = append(s.Command, "-e", e.Name)
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		s.Env[e.Name] = "${" + e.Name + "}"
		if strings.Contains(strings.Join(append(c.Command, c.Args...), " "), "$("+e.Name+")") {
			s.Notes = append(s.Notes, fmt.Sprintf("Kubernetes puts the value of $(%s) into the command; docker does not", printable(e.Name)))
		}
	}
	fill := strings.NewReplacer(filled...)
	if c.WorkingDir != "" {
		s.Command = append(s.Command, "-w", c.WorkingDir)
	}
	if len(c.Command) > 0 {
		s.Command = append(s.Command, "--entrypoint", fill.Replace(c.Command[0]))
	}
	s.Command = append(s.Command, c.Image)
	for i, text := range c.Command {
		if i > 0 {
			s.Command = append(s.Command, fill.Replace(text))
		}
	}
	for _, text := range c.Args {
		s.Command = append(s.Command, fill.Replace(text))
	}
}
