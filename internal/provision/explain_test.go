package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/internal/apiserver"
	"github.com/berth-dev/berth/internal/artifact"
	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/contract/aks"
	"github.com/berth-dev/berth/internal/converge"
	"github.com/berth-dev/berth/internal/converge/kind/nftables"
	swapkind "github.com/berth-dev/berth/internal/converge/kind/swap"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/exitcode"
	"github.com/berth-dev/berth/internal/host"
	"github.com/berth-dev/berth/internal/identity"
	"github.com/berth-dev/berth/internal/imagestore"
)

func action(id desired.ID, v converge.Verb, err error) error {
	return &converge.ActionError{ID: id, Verb: v, Field: "some_field", Err: err}
}

// filterError is what the kernel says where it has no nf_tables.
func filterError(s packetfilter.Settings) error {
	rs, _ := packetfilter.Resources(s)
	return &nftables.Error{Filter: rs[1].(*desired.PacketFilter), Doing: "read", Err: syscall.EPROTONOSUPPORT}
}

func TestExplain(t *testing.T) {
	_, refused := aks.Decode([]byte(`{"version":"v1","cse_timeout":"x"}`))
	path := func(e error) error { return &fs.PathError{Op: "write", Path: "/etc/x", Err: e} }
	api := func(s apiserver.Layer, resolvers ...string) error {
		return action("check:apiserver", converge.VerbCheck, &apiserver.Error{Layer: s, Host: "api:443", Cause: errors.New("no"), Resolvers: resolvers})
	}
	cert := func(r identity.Reason, err error) error {
		return action("credential:/k", converge.VerbIssue, &identity.Error{Reason: r, Remedy: "look there", Err: err})
	}
	unauthorized := apierrors.NewUnauthorized("expired")
	cases := map[string]struct {
		err   error
		code  int
		doing string
		hint  string
	}{
		"nothing":               {nil, 0, "", "Nothing"},
		"document":              {refused, 240, "read the configuration", "Correct the fields"},
		"panic":                 {&converge.PanicError{Value: "oh"}, 240, "", "defect"},
		"panic in an action":    {action("unit:kubelet.service", "start", &converge.PanicError{Value: "oh"}), 240, "start unit:kubelet.service", "defect"},
		"signal":                {fmt.Errorf("%w: %w", exitcode.ErrInterrupted, action("unit:a.service", "start", context.Canceled)), 247, "start unit:a.service", "again"},
		"time is over":          {fmt.Errorf("%w: %w", exitcode.ErrTimeout, action("unit:kubelet.service", "start", context.DeadlineExceeded)), 124, "start unit:kubelet.service", "cse_timeout"},
		"deadline":              {context.DeadlineExceeded, 124, "", "cse_timeout"},
		"disk":                  {action("file:/etc/x", "create", path(syscall.ENOSPC)), 248, "create file:/etc/x", "df"},
		"quota":                 {path(syscall.EDQUOT), 248, "", "df"},
		"read-only":             {action("file:/etc/x", "create", path(syscall.EROFS)), 254, "create file:/etc/x", "read-only"},
		"broken disk":           {path(syscall.EIO), 254, "", "broken"},
		"unsafe parent":         {action("file:/etc/x", "create", path(host.ErrUnsafeParent)), 254, "create file:/etc/x", "file system"},
		"lock for all the time": {fmt.Errorf("%w: %w", exitcode.ErrTimeout, &host.LockedError{Holder: "berth apply"}), 249, "", "Wait"},
		"lock":                  {&host.LockedError{Path: "/run/berth/lock", Holder: "berth apply"}, 249, "", "Wait"},
		"unit":                  {action("unit:containerd.service", "start", &host.JobError{}), 4, "start unit:containerd.service", "systemctl status"},
		"kubelet":               {action("unit:kubelet.service", "start", &host.JobError{}), 34, "start unit:kubelet.service", "journalctl"},
		"name server":           {action("unit:localdns.service", "start", &host.JobError{}), 216, "start unit:localdns.service", "journalctl -u localdns"},
		"no name server":        {action("artifact:localdns", "check", &artifact.AbsentError{}), 219, "check artifact:localdns", "CoreDNS"},
		"attestation":           {action("unit:secure-tls-bootstrap.service", "start", &host.JobError{}), 220, "start unit:secure-tls-bootstrap.service", "journalctl"},
		"attestation's program": {action("artifact:secure-tls-bootstrap-client", "fetch", errors.New("404")), 169, "fetch artifact:secure-tls-bootstrap-client", "download_url"},
		"interface":             {action("unit:systemd-networkd.service", "start", &host.JobError{}), 243, "start unit:systemd-networkd.service", "networkctl"},
		"domain":                {action("unit:berth-realm-join.service", "start", &host.JobError{}), 80, "start unit:berth-realm-join.service", "realmd"},
		"snapshots":             {action("unit:snapshot-update.timer", "start", &host.JobError{}), 202, "start unit:snapshot-update.timer", "snapshot-update.timer"},
		"streaming's setup":     {action("unit:berth-artifact-streaming.service", "start", &host.JobError{}), 153, "start unit:berth-artifact-streaming.service", "enable_artifact_streaming"},
		"streaming":             {action("unit:overlaybd-tcmu.service", "start", &host.JobError{}), 153, "start unit:overlaybd-tcmu.service", "enable_artifact_streaming"},
		"sysctl":                {action("sysctl:vm.max_map_count", "set", syscall.EINVAL), 103, "set sysctl:vm.max_map_count", "range"},
		"huge pages":            {action("sysfs:/sys/kernel/mm/transparent_hugepage/enabled", "set", errors.New("no")), 103, "set sysfs:/sys/kernel/mm/transparent_hugepage/enabled", "range"},
		"swap":                  {action("swap:/swapfile", "check", &swapkind.Error{Err: swapkind.ErrTaken}), 130, "check swap:/swapfile", "taken"},
		"no room for swap":      {action("swap:/swapfile", "create", &swapkind.Error{Err: swapkind.ErrNoRoom}), 131, "create swap:/swapfile", "swap_file_size"},
		"swap's unit":           {action("unit:mnt-swapfile.swap", "start", &host.JobError{}), 130, "start unit:mnt-swapfile.swap", "systemctl status"},
		"module":                {action("module:overlay", "load", errors.New("no")), 49, "load module:overlay", "modprobe"},
		"SSH server":            {action("unit:ssh.socket", "stop", &host.JobError{}), 172, "stop unit:ssh.socket", "systemctl status"},
		"SSH server's keys":     {action("sshd:/etc/ssh/sshd_config", "check", errors.New("no")), 178, "check sshd:/etc/ssh/sshd_config", "sshd -T"},
		"SSH server's reload":   {action("unit:sshd.service", "reload", &host.JobError{}), 178, "reload unit:sshd.service", "sshd -T"},
		"packet filter":         {action("nftables:berth", "set", filterError(packetfilter.Settings{})), 244, "set nftables:berth", "nf_tables"},
		"metadata":              {action("nftables:berth", "check", filterError(packetfilter.Settings{RestrictMetadata: true})), 175, "check nftables:berth", "nf_tables"},
		"metadata in mangle":    {action("nftables:berth", "set", filterError(packetfilter.Settings{RestrictMetadata: true, InMangle: true})), 174, "set nftables:berth", "nf_tables"},
		"trust":                 {action("trust:ca", "create", errors.New("no")), 161, "create trust:ca", "certificate"},
		"artifact":              {action("artifact:cni-plugins", "fetch", errors.New("404")), 41, "fetch artifact:cni-plugins", "network_config"},
		"digest":                {action("artifact:cni-plugins", "fetch", &artifact.DigestError{Want: "a", Got: "b"}), 251, "fetch artifact:cni-plugins", "digest"},
		"plain http":            {action("artifact:cni-plugins", "fetch", &artifact.RefusedError{Reason: "plain"}), 251, "fetch artifact:cni-plugins", "digest"},
		"image, no room":        {action("image:pause", "import", &imagestore.NoSpaceError{}), 248, "import image:pause", "Free space"},
		"image, damaged":        {action("image:pause", "import", &imagestore.DigestError{}), 251, "import image:pause", "digest"},
		"image, no runtime":     {action("image:pause", "import", &imagestore.NotRunningError{}), 28, "import image:pause", ""},
		"unknown artifact":      {action("artifact:other", "fetch", errors.New("404")), 240, "fetch artifact:other", "log"},
		"name":                  {api(apiserver.LayerDNS, "10.0.0.1:53"), 52, "check check:apiserver", "resolv.conf"},
		"name in Azure":         {api(apiserver.LayerDNS, "168.63.129.16:53"), 53, "check check:apiserver", "resolv.conf"},
		"black hole":            {api(apiserver.LayerTCP), 51, "check check:apiserver", "firewall"},
		"wrong CA":              {api(apiserver.LayerTLS), 253, "check check:apiserver", "CA"},
		"broken answer":         {api(apiserver.LayerHTTP), 51, "check check:apiserver", "API server"},
		"token":                 {cert(identity.ReasonUnauthorized, unauthorized), 252, "issue credential:/k", "look there"},
		"not approved":          {cert(identity.ReasonPending, errors.New("pending")), 252, "issue credential:/k", "look there"},
		"name of another":       {cert(identity.ReasonTaken, errors.New("another machine")), 252, "issue credential:/k", "look there"},
		"untrusted issuer":      {cert(identity.ReasonTLS, errors.New("x509")), 253, "issue credential:/k", "look there"},
		"unreachable issuer":    {cert(identity.ReasonUnreachable, &apiserver.Error{Layer: apiserver.LayerTCP}), 51, "issue credential:/k", "look there"},
		"a code of its own":     {&exitcode.Error{Number: 245, During: "wait", Err: errors.New("no node")}, 245, "wait", "journalctl"},
		"of another contract":   {action("trust:ca", "check", &converge.OwnedElsewhereError{Path: "/x", Owner: "osc", Other: "aks"}), 240, "check trust:ca", "--take-over"},
		"changed meanwhile":     {action("trust:ca", "create", converge.ErrChanged), 240, "create trust:ca", "Run it again"},
		"anything else":         {errors.New("odd"), 240, "", "log"},
		"two failures":          {errors.Join(action("sysctl:a.b", "set", syscall.EINVAL), action("module:x", "load", errors.New("no"))), 103, "set sysctl:a.b", "range"},
		"milestone by name":     {&apiserver.MilestoneError{Milestone: "ready", Reason: "cni-not-ready", Detail: "no CNI", Remedy: "put one"}, 246, "wait for ready", "put one"},
		"milestone by DNS":      {&apiserver.MilestoneError{Milestone: "registered", Reason: "dns", Err: &apiserver.Error{Layer: apiserver.LayerDNS}, Detail: "x"}, 52, "wait for registered", ""},
		"milestone in time":     {&apiserver.MilestoneError{Milestone: "ready", Reason: "not-ready", Detail: "x", Err: exitcode.ErrTimeout}, 246, "wait for ready", ""},
		"milestone and signal":  {&apiserver.MilestoneError{Milestone: "ready", Reason: "not-ready", Detail: "x", Err: exitcode.ErrInterrupted}, 247, "wait for ready", ""},
		"no systemd":            {action("unit:containerd.service", "check", host.ErrNoSystemd), 4, "check unit:containerd.service", "Boot the machine with systemd"},
		"kubelet crash":         {&apiserver.MilestoneError{Milestone: "kubelet", Reason: "kubelet-crash", Detail: "x"}, 34, "wait for kubelet", "kubelet"},
		"401 in the wait": {&apiserver.Error{Layer: apiserver.LayerHTTP, Cause: apierrors.NewGenericServerResponse(http.StatusUnauthorized, "get",
			schema.GroupResource{Resource: "nodes"}, "n", "", 0, true)}, 252, "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := Explain(c.err)
			if f.Code.Number != c.code || f.Doing != c.doing || !strings.Contains(f.Hint, c.hint) {
				t.Errorf("got %d, doing %q, hint %q", f.Code.Number, f.Doing, f.Hint)
			}
			if c.err != nil && f.Cause == "" || strings.Contains(f.Cause, "\n") {
				t.Errorf("cause %q", f.Cause)
			}
		})
	}
}

// TestEndedAfterTheTime: what a run had found out before its time was over stands, not the
// number of the time; a signal goes before both.
func TestEndedAfterTheTime(t *testing.T) {
	check := action("check:apiserver", converge.VerbCheck, &apiserver.Error{Layer: apiserver.LayerTCP, Host: "api:443", Cause: context.DeadlineExceeded})
	start := action("unit:a.service", "start", context.DeadlineExceeded)
	for name, c := range map[string]struct {
		cause error
		err   error
		code  int
	}{
		"check":            {exitcode.ErrTimeout, check, 51},
		"another action":   {exitcode.ErrTimeout, start, exitcode.Timeout},
		"check and signal": {exitcode.ErrInterrupted, check, exitcode.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(c.cause)
			if f := Explain(ended(ctx, c.err)); f.Code.Number != c.code {
				t.Errorf("got %d, want %d: %s", f.Code.Number, c.code, f.Cause)
			}
		})
	}
}

func TestExplainNamesFields(t *testing.T) {
	_, refused := aks.Decode([]byte(`{"version":"v1","cse_timeout":"x"}`))
	if f := Explain(refused); !strings.Contains(f.Field, "cse_timeout") {
		t.Errorf("field %q of %q", f.Field, f.Cause)
	}
	if f := Explain(action("file:/x", "create", errors.New("no"))); f.Field != "some_field" {
		t.Errorf("field %q", f.Field)
	}
	full := &fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}
	if f := Explain(action("file:/x", "create", full)); f.Field != "" {
		t.Errorf("a full disk is blamed on %q", f.Field)
	}
}
