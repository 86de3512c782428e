// Package ignition is the part of an Ignition config that berth's libraries write:
// files, and a unit that is started at boot.
package ignition

// Version of the specification that the configs follow.
const Version = "3.3.0"

// Config is the whole of it. Encode it as JSON.
type Config struct {
	Ignition struct {
		Version string `json:"version"`
	} `json:"ignition"`
	Storage struct {
		Files []File `json:"files"`
		Links []Link `json:"links"`
	} `json:"storage"`
	Systemd struct {
		Units []Unit `json:"units"`
	} `json:"systemd"`
}

// File is a file with its mode in decimal.
type File struct {
	Path      string `json:"path"`
	Overwrite bool   `json:"overwrite"`
	Mode      int    `json:"mode"`
	Contents  Source `json:"contents"`
}

// Source is a URL, of scheme data for what stands in the config itself.
type Source struct {
	Source string `json:"source"`
}

// Link is a symbolic link.
type Link struct {
	Path      string `json:"path"`
	Overwrite bool   `json:"overwrite"`
	Target    string `json:"target"`
}

// Unit is a unit of systemd; one without contents is the image's.
type Unit struct {
	Name     string `json:"name"`
	Enabled  bool   `json:"enabled"`
	Contents string `json:"contents,omitempty"`
}

// New is an empty config.
func New() *Config {
	c := &Config{}
	c.Ignition.Version = Version
	return c
}

// Write adds a file of root's, mode 0600, whose content is a data URL.
func (c *Config) Write(path, dataURL string) {
	c.Storage.Files = append(c.Storage.Files, File{Path: path, Overwrite: true, Mode: 0o600, Contents: Source{dataURL}})
}

// Start has a unit started at every boot; contents is "" for one of the image. It is
// enabled twice over: Ignition leaves a preset, which systemd reads on a machine's first
// boot only, and which some distributions do not read then; the link in
// multi-user.target.wants counts on every boot. Of the link's target systemd reads the
// name only, so that it holds wherever the image keeps the unit.
func (c *Config) Start(unit, contents string) {
	const units = "/etc/systemd/system/"
	c.Storage.Links = append(c.Storage.Links, Link{Path: units + "multi-user.target.wants/" + unit, Overwrite: true, Target: units + unit})
	c.Systemd.Units = append(c.Systemd.Units, Unit{Name: unit, Enabled: true, Contents: contents})
}
