package provision

import (
	"errors"

	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/report"
)

// RefuseArguments is what is wrong with a command line that names a document, a shell script, or
// none; it becomes a result, since somebody waits for one.
func RefuseArguments(config, command string) error {
	switch {
	case command != "": // beside --provision-config, too: AKS lets it decide then
		return &exitcode.Error{Number: exitcode.CommandDocument, During: "read --nbc-cmd " + command, Err: errors.New("--nbc-cmd is not supported")}
	case config != "":
		return nil
	}
	return &exitcode.Error{
		Number: exitcode.Internal, During: "read the command line", Err: errors.New("--provision-config is required"),
		Remedy: "berth provision --provision-config=" + report.ConfigPath,
	}
}
