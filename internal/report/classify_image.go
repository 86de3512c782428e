package report

import "github.com/berth-dev/berth/internal/imagestore"

// imported is the code for an image that did not get into the runtime.
func imported(err error) int {
	switch {
	case is[*imagestore.NoSpaceError](err):
		return CodeNoSpace
	case is[*imagestore.DigestError](err), is[*imagestore.ManifestError](err):
		return CodeDigest
	case is[*imagestore.NotRunningError](err), is[*imagestore.PlatformError](err), is[*imagestore.Error](err):
		return CodeContainerd
	}
	return 0
}
