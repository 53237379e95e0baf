package wiring

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
)

const (
	envPrefix = "CORREX_"
	// fileSuffix of a secret's key names a file that holds it.
	fileSuffix = "_file"
)

// ownVariables begin like settings and are read by the command line alone.
var ownVariables = []string{envPrefix + "CONFIG", envPrefix + "SERVER", envPrefix + "TOKEN"}

// aliases are variables of others that are settings too; an empty one counts as unset, as their own tools have it.
var aliases = []struct{ variable, key string }{
	{"OPENAI_API_KEY", "openai.api_key"},
	{"OPENAI_API_KEY_FILE", "openai.api_key" + fileSuffix},
	{"OPENAI_BASE_URL", "openai.base_url"},
}

// Sources are where settings come from, the strongest first: flags over environment over file over defaults.
type Sources struct {
	// Flags by key.
	Flags map[string]string
	// Environ as of os.Environ.
	Environ []string
	// File is the path of a YAML file; "" = none.
	File string
}

// Loaded is an effective configuration.
type Loaded struct {
	Config Config
	// Origins says where each setting that is no default came from, by key.
	Origins map[string]string
	// Warnings for people, such as variables that nothing reads.
	Warnings []string
}

// Load puts the sources together. All that is wrong is reported at once, as joined *SettingError values where it is about a setting.
func Load(src Sources) (Loaded, error) {
	l := &loader{k: koanf.New("."), origins: make(map[string]string)}
	l.layer(defaults(src.Environ))
	l.origins = make(map[string]string)
	l.file(src.File)
	l.aliases(src.Environ)
	l.environment(src.Environ)
	l.flags(src.Flags)

	cfg := Config{Version: DefaultConfig().Version}
	if err := l.k.Unmarshal("", &cfg); err != nil {
		l.errs = append(l.errs, fmt.Errorf("read configuration: %w", err))
	}
	if len(l.errs) == 0 {
		l.errs = append(l.errs, l.placed(cfg.Validate()))
	}
	slices.Sort(l.warnings)
	return Loaded{Config: cfg, Origins: l.origins, Warnings: l.warnings}, errors.Join(l.errs...)
}

// loader collects the layers.
type loader struct {
	k        *koanf.Koanf
	origins  map[string]string
	warnings []string
	errs     []error
}

// given is one value of one layer.
type given struct {
	key    string
	raw    any
	source string
}

func defaults(environ []string) []given {
	var out []given
	cfg := DefaultConfig()
	cfg.DataDir = dataDir(environ)
	for _, f := range fields {
		out = append(out, given{key: f.key, raw: f.value(cfg), source: "default"})
	}
	return out
}

// dataDir is the user's folder for data; "" if the environment names none.
func dataDir(environ []string) string {
	vars := variables(environ)
	if base := vars["XDG_DATA_HOME"]; filepath.IsAbs(base) {
		return filepath.Join(base, "correx-actors")
	}
	if home := vars["HOME"]; home != "" {
		return filepath.Join(home, ".local", "share", "correx-actors")
	}
	return ""
}

func variables(environ []string) map[string]string {
	vars := make(map[string]string, len(environ))
	for _, v := range environ {
		if name, value, ok := strings.Cut(v, "="); ok {
			vars[name] = value
		}
	}
	return vars
}

func (l *loader) file(path string) {
	if path == "" {
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("read configuration file: %w", err))
		return
	}
	k := koanf.New(".")
	if err := k.Load(rawbytes.Provider(content), yaml.Parser()); err != nil {
		l.errs = append(l.errs, fmt.Errorf("read configuration file %s: %w", path, err))
		return
	}
	var values []given
	for _, key := range k.Keys() {
		raw := k.Get(key)
		if section, ok := raw.(map[string]any); ok && len(section) == 0 && isSection(key) {
			continue
		}
		if !known(key) {
			problem := "unknown setting"
			if isSection(key) {
				problem = "a section of settings, not a setting"
			}
			l.errs = append(l.errs, &SettingError{Key: key, Value: fmt.Sprint(raw), Source: path, Problem: problem})
			continue
		}
		values = append(values, given{key: key, raw: raw, source: path})
	}
	l.layer(values)
}

func (l *loader) aliases(environ []string) {
	var values []given
	vars := variables(environ)
	for _, alias := range aliases {
		if value := vars[alias.variable]; value != "" {
			values = append(values, given{key: alias.key, raw: value, source: alias.variable})
		}
	}
	l.layer(values)
}

func (l *loader) environment(environ []string) {
	read, err := env.Provider("", env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return environ },
	}).Read()
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("read environment: %w", err))
		return
	}
	var values []given
	for _, name := range slices.Sorted(maps.Keys(read)) {
		key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "__", "."))
		switch {
		case known(key) && name == envName(key):
			values = append(values, given{key: key, raw: read[name], source: name})
		case !slices.Contains(ownVariables, name):
			l.warnings = append(l.warnings, fmt.Sprintf("variable %s is no setting and is ignored", name))
		}
	}
	l.layer(values)
}

func (l *loader) flags(flags map[string]string) {
	var values []given
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		source := "the command line"
		switch f, ok := fieldByKey[key]; {
		case !known(key):
			l.errs = append(l.errs, &SettingError{Key: key, Value: flags[key], Source: source, Problem: "unknown setting"})
		case ok && f.secret():
			l.errs = append(l.errs, &SettingError{
				Key: key, Value: hidden, Source: source, Problem: "others can read command lines; use " + f.env() + " or a file",
			})
		default:
			values = append(values, given{key: key, raw: flags[key], source: source})
		}
	}
	l.layer(values)
}

// layer puts values over what is there.
func (l *loader) layer(values []given) {
	typed := make(map[string]any, len(values))
	for _, v := range values {
		f, ok := fieldByKey[v.key]
		if !ok {
			v, f = l.fromFile(v)
		}
		if f.key == "" {
			continue
		}
		if _, twice := typed[f.key]; twice {
			l.errs = append(l.errs, &SettingError{Key: f.key, Value: hidden, Source: v.source, Problem: "given both itself and as a file"})
			continue
		}
		value, problem := f.read(v.raw)
		if problem != "" {
			shown := fmt.Sprint(v.raw)
			if f.secret() || f.objects() { // objects hold secrets; the problem names the place
				shown = hidden
			}
			l.errs = append(l.errs, &SettingError{Key: f.key, Value: shown, Source: v.source, Problem: problem})
			continue
		}
		typed[f.key], l.origins[f.key] = value, v.source
	}
	if err := l.k.Load(confmap.Provider(typed, "."), nil); err != nil {
		l.errs = append(l.errs, fmt.Errorf("read configuration: %w", err))
	}
}

// fromFile reads the secret whose file v names; the field is zero if it cannot.
func (l *loader) fromFile(v given) (given, field) {
	f := fieldByKey[strings.TrimSuffix(v.key, fileSuffix)]
	path, ok := v.raw.(string)
	if !ok || path == "" {
		l.errs = append(l.errs, &SettingError{Key: v.key, Value: fmt.Sprint(v.raw), Source: v.source, Problem: "want the path of a file"})
		return v, field{}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		l.errs = append(l.errs, &SettingError{Key: v.key, Value: path, Source: v.source, Problem: err.Error()})
		return v, field{}
	}
	v.raw = strings.TrimSpace(string(content))
	v.source += " " + path
	return v, f
}

// placed adds to each fault of a setting where its value came from.
func (l *loader) placed(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			var fault *SettingError
			if errors.As(e, &fault) && fault.Source == "" {
				fault.Source = l.origins[fault.Key]
			}
		}
	}
	return err
}

// known says whether a key is a setting, or names the file of a secret one.
func known(key string) bool {
	if _, ok := fieldByKey[key]; ok {
		return true
	}
	base, isFile := strings.CutSuffix(key, fileSuffix)
	f, ok := fieldByKey[base]
	return isFile && ok && f.secret()
}

func isSection(key string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return strings.HasPrefix(f.key, key+".") })
}

// read takes a value as a file, the environment or a flag gives it.
func (f field) read(raw any) (any, string) {
	if reflect.TypeOf(raw) == f.typ {
		return raw, ""
	}
	switch f.kind() {
	case "duration":
		if s, ok := raw.(string); ok {
			if d, err := time.ParseDuration(s); err == nil {
				return d, ""
			}
		}
		return nil, "want a duration such as 500ms, 30s or 15m"
	case "number":
		if f.typ.Kind() == reflect.Float64 {
			n, err := strconv.ParseFloat(fmt.Sprint(raw), 64)
			if err != nil {
				return nil, "want a number"
			}
			return n, ""
		}
		n, err := strconv.ParseInt(fmt.Sprint(raw), 10, strconv.IntSize)
		if err != nil {
			return nil, "want a whole number"
		}
		return reflect.ValueOf(n).Convert(f.typ).Interface(), ""
	case "boolean":
		switch raw { // what YAML writes; 1, yes and the like would be guesses
		case "true":
			return true, ""
		case "false":
			return false, ""
		}
		return nil, "want true or false"
	case "list":
		return list(raw)
	case "objects":
		return f.readObjects(raw)
	}
	s, ok := raw.(string)
	if !ok {
		return nil, "want a text"
	}
	return s, ""
}

// list takes a YAML list of texts, or one text with commas.
func list(raw any) (any, string) {
	switch raw := raw.(type) {
	case string:
		out := []string{}
		for item := range strings.SplitSeq(raw, ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
		return out, ""
	case []any:
		out := make([]string, 0, len(raw))
		for _, item := range raw {
			s, ok := item.(string)
			if !ok {
				return nil, "want a list of texts"
			}
			out = append(out, s)
		}
		return out, ""
	}
	return nil, "want a list of texts"
}
