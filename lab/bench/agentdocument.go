package bench

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// oscWords are the contents that change from document to document.
type oscWords struct {
	// File is a file's; Trigger that of a file whose change restarts a unit.
	File, Trigger string
	// Large adds 200 files and 50 units: nearly the 1 MiB that a Secret may have.
	Large bool
}

const (
	oscDir      = "/etc/agent-bench"
	oscFile     = oscDir + "/file.conf"
	oscTrigger  = oscDir + "/trigger.conf"
	oscFiles    = 200
	oscUnits    = 50
	oscFileSize = 3744
	oscLine     = "%03d is this file's line\n"
)

func (w oscWords) document() string {
	var files, units strings.Builder
	inline(&files, oscFile, []byte(w.File))
	inline(&files, oscTrigger, []byte(w.Trigger))
	unit(&units, "agent-bench.service", oscTrigger)
	if w.Large {
		for i := range oscFiles {
			inline(&files, largeFile(i), []byte(strings.Repeat(fmt.Sprintf(oscLine, i), oscFileSize/len(fmt.Sprintf(oscLine, i)))))
		}
		for i := range oscUnits {
			unit(&units, fmt.Sprintf("agent-bench-%02d.service", i), largeFile(i))
		}
	}
	return "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\nspec:\n  files:\n" + files.String() + "  units:\n" + units.String()
}

func largeFile(i int) string { return fmt.Sprintf("%s/large/%03d", oscDir, i) }

// inline is a file as cluster managers write it.
func inline(b *strings.Builder, path string, text []byte) {
	fmt.Fprintf(b, "  - path: %s\n    permissions: 420\n    content:\n      inline:\n        encoding: b64\n        data: %s\n",
		path, base64.StdEncoding.EncodeToString(text))
}

func unit(b *strings.Builder, name, trigger string) {
	const text = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
	fmt.Fprintf(b, "  - name: %s\n    command: start\n    enable: true\n    content: %q\n    filePaths: [%s]\n", name, text, trigger)
}
