package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	pawl "github.com/pawlrun/pawl"
)

const defaultConfigFile = "pawl.yaml"

// settingFlags are the flags of one command that are settings.
type settingFlags struct {
	scope  scope
	config string
	flags  map[string]*settingFlag // by the flag's name
}

// settingFlag keeps what was written. It is read later, together with the
// other places a value can come from.
type settingFlag struct {
	texts    []string
	fallback string
	isSwitch bool // it needs no value
}

func (f *settingFlag) String() string        { return f.fallback }
func (f *settingFlag) Set(text string) error { f.texts = append(f.texts, text); return nil }
func (f *settingFlag) Type() string {
	if f.isSwitch {
		return "bool"
	}
	return "value"
}

// addSettingFlags gives a command the flags of its scope.
func addSettingFlags(cmd *cobra.Command, s scope) *settingFlags {
	sf := &settingFlags{scope: s, flags: map[string]*settingFlag{}}
	defaults := defaultValues()
	for _, def := range settings() {
		if def.scope&s == 0 {
			continue
		}
		flag := &settingFlag{fallback: formatValue(def.at(&defaults))}
		sf.flags[def.flag] = flag
		cmd.Flags().Var(flag, def.flag, fmt.Sprintf("%s [%s]", def.usage, def.env))
		if isSwitch(def.at(&defaults)) {
			flag.isSwitch, cmd.Flags().Lookup(def.flag).NoOptDefVal = true, "true"
		}
	}
	cmd.Flags().StringVar(&sf.config, "config", "", "read settings from `FILE` (pawl.yaml, if it is there) [PAWL_CONFIG]")
	return sf
}

// isSwitch reports whether a value is true or false.
func isSwitch(target any) bool {
	_, is := target.(*bool)
	return is
}

// resolved are the settings of one call, with where each was given.
type resolved struct {
	values
	origin map[string]string // by key or flag; what was not given is absent

	// found are the settings that come from a config file which was not named,
	// but found in the working directory; folder is that directory, empty if
	// there is no such file.
	found  map[string]bool
	folder string
}

// load finds the value of every setting: flag, environment, file, default.
func (sf *settingFlags) load(p *Process) (*resolved, error) {
	file, named, err := sf.readFile(p)
	if err != nil {
		return nil, err
	}
	r := &resolved{values: defaultValues(), origin: map[string]string{}, found: map[string]bool{}}
	if !named {
		if r.folder, err = filepath.Abs(p.path(".")); err != nil {
			return nil, fmt.Errorf("find the working directory: %w", err)
		}
	}
	wanted := sf.scope
	if wanted&forClient != 0 {
		wanted |= seenByClient
	}
	for _, def := range settings() {
		if def.scope&wanted == 0 {
			continue
		}
		texts, place := sf.find(p, def, file)
		if texts == nil {
			continue
		}
		if err := def.set(&r.values, texts); err != nil {
			return nil, misplaced(place, err)
		}
		if def.merged { // what the other places say of other names
			if texts, err = sf.merge(p, def, file); err != nil {
				return nil, err
			}
			if err := def.set(&r.values, texts); err != nil {
				return nil, misplaced(place, err)
			}
		}
		r.origin[def.name()] = place
		r.found[def.name()] = !named && place == file[def.key].place
	}
	r.derive()
	r.locate(p)
	return r, nil
}

// set reads what was written into the values, and checks it.
func (s setting) set(v *values, texts []string) error {
	if err := parseInto(s.at(v), texts); err != nil || s.check == nil {
		return err
	}
	return s.check(v)
}

// misplaced is a fault in a value, with the place where it was given.
func misplaced(place string, err error) error {
	if e, ok := errors.AsType[*pawl.Error](err); ok {
		return usageError(e.Hint, "%s: %s", place, e.Msg)
	}
	return usageError("", "%s: %s", place, err)
}

func (s setting) name() string {
	if s.key != "" {
		return s.key
	}
	return s.flag
}

// find returns what was written for a setting in the place that counts, and
// that place; no texts when it was not given.
func (sf *settingFlags) find(p *Process, def setting, file map[string]fileValue) (texts []string, place string) {
	for _, from := range sf.places(p, def, file) {
		texts, place = from.texts, from.place
	}
	return texts, place
}

// merge returns what was written for a setting in all places, that of the place
// which counts most last. Each must be right by itself.
func (sf *settingFlags) merge(p *Process, def setting, file map[string]fileValue) (texts []string, err error) {
	for _, from := range sf.places(p, def, file) {
		if err := def.set(&values{}, from.texts); err != nil {
			return nil, misplaced(from.place, err)
		}
		texts = append(texts, from.texts...)
	}
	return texts, nil
}

// places are where a setting was given: file, environment, flag.
func (sf *settingFlags) places(p *Process, def setting, file map[string]fileValue) (list []fileValue) {
	_, isList := def.at(&values{}).(*[]string)
	if v, ok := file[def.key]; ok && def.key != "" {
		list = append(list, v)
	}
	if text := p.Getenv(def.env); text != "" {
		texts := []string{text}
		if isList {
			texts = splitList(text, def.paths)
		}
		list = append(list, fileValue{texts, def.env})
	}
	if flag := sf.flags[def.flag]; flag != nil && len(flag.texts) > 0 {
		texts := flag.texts
		if isList && !def.paths {
			texts = splitList(strings.Join(texts, ","), false)
		}
		list = append(list, fileValue{texts, "--" + def.flag})
	}
	return list
}

// readFile reads the config file, if there is one, and reports whether it was
// named. A variable with a relative path names none: it stands for whatever the
// working directory has.
func (sf *settingFlags) readFile(p *Process) (file map[string]fileValue, named bool, err error) {
	name, asked := sf.config, "--config"
	named = name != ""
	if name == "" {
		name, asked = p.Getenv("PAWL_CONFIG"), "PAWL_CONFIG"
		named = filepath.IsAbs(name)
	}
	explicit := name != ""
	if !explicit {
		name = defaultConfigFile
	}
	text, err := os.ReadFile(p.path(name))
	switch {
	case errors.Is(err, os.ErrNotExist) && !explicit:
		return map[string]fileValue{}, false, nil
	case err != nil && explicit:
		return nil, false, usageError("", "%s: %s", asked, err)
	case err != nil:
		return nil, false, usageError("", "read %s: %s", name, err)
	}
	file, err = parseConfigFile(name, text)
	return file, named, err
}

// derive fills in what follows from other settings: the database file is in
// the data folder, and commands look for the server where it listens.
func (r *resolved) derive() {
	if r.origin["data"] != "" && r.origin["database"] == "" {
		r.server.Database = "sqlite:" + filepath.Join(r.server.Data, "pawl.db")
	}
	if r.origin["addr"] != "" && r.origin["server"] == "" {
		r.url = urlOf(r.server.Addr, r.url)
	}
}

// urlOf is where a server on this machine answers that listens on addr, or
// fallback when that cannot be told.
func urlOf(addr, fallback string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return fallback
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// locate makes paths absolute where the process does not stand in its folder.
func (r *resolved) locate(p *Process) {
	r.server.Data = p.path(r.server.Data)
	r.server.ConnectionDir = p.path(r.server.ConnectionDir)
	r.tokenFile = p.path(r.tokenFile)
	for _, list := range [][]string{r.server.Providers, r.server.ProviderDirs} {
		for i := range list {
			list[i] = p.path(list[i])
		}
	}
	if file, ok := strings.CutPrefix(r.server.Database, "sqlite:"); ok && !strings.HasPrefix(file, "//") {
		r.server.Database = "sqlite:" + p.path(file)
	}
}

// explain says where the setting was given that a check of the whole found
// wrong. Such messages begin with the key of the setting.
func (r *resolved) explain(err error) error {
	e, ok := errors.AsType[*pawl.Error](err)
	if !ok || e.Code != pawl.CodeInvalid {
		return err
	}
	told := *e
	told.Code = pawl.CodeUsage
	key, rest, _ := strings.Cut(e.Msg, ": ")
	if place := r.origin[key]; place != "" {
		told.Op, told.Msg = "", place+": "+rest
	}
	return &told
}
