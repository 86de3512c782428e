package aks

import (
	"path"

	"github.com/berth-dev/berth/internal/component/adminuser"
	"github.com/berth-dev/berth/internal/component/imageunits"
	"github.com/berth-dev/berth/internal/component/kubelet"
	"github.com/berth-dev/berth/internal/component/motd"
	"github.com/berth-dev/berth/internal/component/upgrades"
	"github.com/berth-dev/berth/internal/desired"
)

// message is what a login shows.
func (t *translation) message() error {
	t.add("message_of_the_day", motd.Resources(greeting(t))...)
	return nil
}

// care is what keeps the machine open to its administrators, and up to date.
func (t *translation) care() error {
	if users := t.admins(); len(users) > 0 {
		t.add("linux_admin_username", adminuser.Resources(t.facts.Program, users...)...)
	}
	t.add("enable_unattended_upgrade", upgrades.Resources(t.upgrades())...)
	if r := t.depot(); r != nil {
		t.add("custom_cloud_config.repo_depot_endpoint", r)
	}
	if linksLog(t) {
		t.add("provision_output", &desired.Link{Path: t.cfg.GetProvisionOutput(), Target: logPath})
	}
	return nil
}

// admins are those whose passwords last: who is named, and root; where nobody is, those of
// the published ones whose passwords would expire.
func (t *translation) admins() []string {
	switch {
	case namesAdmin(t):
		return []string{t.cfg.GetLinuxAdminUsername(), "root"}
	case t.cfg.GetLinuxAdminUsername() == "":
		return t.facts.Expiring
	}
	return nil
}

// imageUnits are started once the node is one, as published.
func (t *translation) imageUnits() error {
	t.add("", imageunits.Resources(imageunits.Settings{Has: t.facts.ImageUnits, LocalDNS: localDNS(t), Addresses: t.facts.NodeIP,
		After: []desired.ID{desired.UnitID(kubelet.Unit)}})...)
	return nil
}

// depot is the mirror of packages that a cloud of its own has.
func (t *translation) depot() desired.Resource {
	if !t.facts.Apt || !inCustomCloud(t) {
		return nil
	}
	return upgrades.Depot(t.cfg.GetCustomCloudConfig().GetRepoDepotEndpoint(), t.facts.Ubuntu)
}

func mirrorsPackages(t *translation) bool { return t.depot() != nil }

func namesAdmin(t *translation) bool { return adminuser.IsName(t.cfg.GetLinuxAdminUsername()) }

func (t *translation) upgrades() upgrades.Settings {
	return upgrades.Settings{On: t.cfg.GetEnableUnattendedUpgrade(), Apt: t.facts.Apt, HasUnit: t.facts.HasVendorUnit}
}

func upgradesItself(t *translation) bool { return t.upgrades().Known() }

// logPath is the log of provisioning, publishedOutput a name that each run gives it.
const (
	logPath         = "/var/log/azure/aks-node-controller.log"
	publishedOutput = "/var/log/azure/cluster-provision-cse-output.log"
)

// linksLog: the log is to have another name than those that it has anyway.
func linksLog(t *translation) bool {
	p := t.cfg.GetProvisionOutput()
	return isFileName(t) && p != logPath && p != publishedOutput
}

func isFileName(t *translation) bool {
	p := t.cfg.GetProvisionOutput()
	return path.IsAbs(p) && path.Clean(p) == p && p != "/"
}

// greets: text that is no base64 is accepted, as published, and shows nothing.
func greets(t *translation) bool { return len(greeting(t)) > 0 }

func greeting(t *translation) []byte {
	b, err := unbase64("message_of_the_day", t.cfg.GetMessageOfTheDay())
	if err != nil {
		return nil
	}
	return b
}
