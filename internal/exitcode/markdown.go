package exitcode

import (
	"fmt"
	"strings"
)

// Markdown is docs/exit-codes.md; a test fails when the file is stale.
func Markdown() string {
	var b strings.Builder
	b.WriteString(registryHead)
	for _, c := range registry {
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", c.Number, c.Name, c.Meaning, c.Hint)
	}
	b.WriteString(registryTail)
	for _, c := range commands {
		fmt.Fprintf(&b, "| %d | %s |\n", c.Number, c.Meaning)
	}
	return b.String()
}

const registryHead = `# Exit codes

<!-- Generated from internal/exitcode by go test ./internal/exitcode -run RegistryPage -update. -->

## provision and provision-wait

Both end with the provisioning exit code: the field ` + "`ExitCode`" + ` of provision.json, whose field ` + "`Berth.Code`" + ` holds the name.
Numbers below 244 are those that AKS publishes, where the meaning is the same; 244 to 254 are berth's own.
A command line that is wrong ends with 1.

| code | name | meaning | what to do |
|---|---|---|---|
`

const registryTail = `
## All other commands

| code | meaning |
|---|---|
`
