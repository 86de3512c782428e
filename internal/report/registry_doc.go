package report

import (
	"fmt"
	"strings"
)

// RegistryMarkdown is docs/exit-codes.md; a test fails when the file is stale.
func RegistryMarkdown() string {
	var b strings.Builder
	b.WriteString(registryHead)
	for _, c := range registry {
		fmt.Fprintf(&b, "| %d | `%s` | %s | %s |\n", c.Number, c.Name, c.Meaning, c.Hint)
	}
	b.WriteString(registryTail)
	return b.String()
}

const registryHead = `# Exit codes

<!-- Generated from internal/report by go test ./internal/report -run RegistryDocument -update. -->

## provision and provision-wait

Both end with the provisioning exit code: the field ` + "`ExitCode`" + ` of provision.json, whose field ` + "`Berth.Code`" + ` holds the name.
Numbers below 244 are those that AKS publishes, where the meaning is the same; 245 to 254 are berth's own.
A command line that is wrong ends with 1.

| code | name | meaning | what to do |
|---|---|---|---|
`

const registryTail = `
## All other commands

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed, or the command line is wrong |
| 2 | changes are pending (` + "`plan`" + `) |
| 3 | the document was refused |
| 4 | done, but something was kept or left |
| 130 | interrupted |
`
