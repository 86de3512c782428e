package kernel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/lazyregexp"
)

// denied are modules by which any user of an old kernel becomes root (CVE-2026-31431,
// CVE-2026-43284, CVE-2026-43500).
var denied = []string{"algif_aead", "esp4", "esp6", "rxrpc"}

// System is what decides whether the kernel is an old one.
type System struct {
	// Release is the kernel's, "6.8.0-1058-azure".
	Release string
	// ID, Version and Variant are those of os-release, in lower case.
	ID, Version, Variant string
}

// Deny are the files that keep the modules from being loaded, where the kernel of a
// published image needs it; the names are the published ones. What is loaded already
// stays until the next boot.
func Deny(s System) []desired.Resource {
	if !s.vulnerable() {
		return nil
	}
	var out []desired.Resource
	for _, m := range denied {
		out = append(out, file("/etc/modprobe.d/disable-"+m+".conf", "# Written by berth.\ninstall "+m+" /bin/false\nblacklist "+m+"\n"))
	}
	return out
}

// fixed are the first kernels of Ubuntu with all corrections, as published, by release and
// flavour. Of 20.04 only that of Azure with FIPS has them.
var fixed = map[string]map[string]string{
	"20.04": {"azure-fips": "5.4.0-1164"},
	"22.04": {"azure": "5.15.0-1116", "azure-fde": "5.15.0-1116", "azure-fips": "5.15.0-1116", "generic": "5.15.0-181"},
	"24.04": {"azure": "6.8.0-1058", "azure-fde": "6.8.0-1058", "azure-fips": "6.8.0-1058", "generic": "6.8.0-124"},
}

// vulnerable: what is not known of an Ubuntu counts as old, later releases than those
// above as corrected. Azure Linux 3 is corrected, but its hardened variant keeps the rules.
func (s System) vulnerable() bool {
	switch s.ID {
	case "mariner":
		return true
	case "azurelinux":
		return s.Version == "2.0" || s.Variant == "osguard"
	case "ubuntu":
		return s.vulnerableUbuntu()
	}
	return false
}

var release = lazyregexp.New(`^(\d+)\.(\d+)\.(\d+)-(\d+)-([a-z-]+)$`)

func (s System) vulnerableUbuntu() bool {
	flavours, known := fixed[s.Version]
	if !known {
		return s.Version == ""
	}
	m := release().FindStringSubmatch(s.Release)
	if m == nil || flavours[m[5]] == "" {
		return true
	}
	have, least := numbers(strings.Join(m[1:5], ".")), numbers(strings.ReplaceAll(flavours[m[5]], "-", "."))
	if s.Version == "20.04" && !slices.Equal(have[:3], least[:3]) {
		return true // later lines of kernels there are not corrected
	}
	return slices.Compare(have, least) < 0
}

func numbers(text string) []int {
	var out []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			n = 0 // too long to be one
		}
		out = append(out, n)
	}
	return out
}
