package join

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/berth-dev/berth/internal/exitcode"
)

// VersionField is where a NodeConfig says kubelet's version.
const VersionField = "components.kubernetes.version"

// fits refuses a kubelet that the cluster does not support: one of a later minor version
// than the API server (Kubernetes' version skew policy), and a step back to an earlier
// minor version while pods run, whose state on disk the older one may not read.
func (j *joining) fits(ctx context.Context, w *Wanted) error {
	return Fits(w.Version, w.Drains, func() Peers { return j.Peers(ctx, w) })
}

// Fits is fits of a version; drains says that the node will be drained.
func Fits(wanted string, drains bool, peers func() Peers) error {
	want, err := version.ParseGeneric(wanted)
	if err != nil {
		return nil //nolint:nilerr // the document's own rules check its form
	}
	p := peers()
	if server, err := version.ParseGeneric(p.Server); err == nil && minor(want).GreaterThan(minor(server)) {
		return &exitcode.Error{Number: exitcode.Internal, During: "compare versions", At: VersionField,
			Err:    fmt.Errorf("kubelet %s is newer than the API server, which is %s", wanted, p.Server),
			Remedy: fmt.Sprintf("Name a version of at most %d.%d, or upgrade the control plane first.", server.Major(), server.Minor())}
	}
	is, err := version.ParseGeneric(p.Kubelet)
	if err != nil || !minor(want).LessThan(minor(is)) {
		return nil //nolint:nilerr // a machine that is no node yet has none
	}
	pods := names(working(p.Pods))
	if drains || p.Unschedulable && len(pods) == 0 {
		return nil
	}
	cause := "the node is not drained"
	if len(pods) > 0 {
		cause += ": " + strings.Join(pods, ", ")
	}
	return &exitcode.Error{Number: exitcode.Internal, During: "compare versions", At: VersionField,
		Err:    errors.New("kubelet " + wanted + " is of an earlier minor version than the " + p.Kubelet + " that runs, and " + cause),
		Remedy: "Run kubectl drain NODE --ignore-daemonsets first, or give --drain."}
}

// minor is a version without what follows its minor number.
func minor(v *version.Version) *version.Version {
	return version.MajorMinor(v.Major(), v.Minor())
}
