package aks

import (
	"github.com/berth-dev/berth/internal/component/localdns"
	"github.com/berth-dev/berth/internal/component/packetfilter"
	"github.com/berth-dev/berth/internal/component/ssh"
)

// packetFilter is in force before kubelet starts a pod.
func (t *translation) packetFilter() error {
	imds := t.cfg.GetImdsRestrictionConfig()
	s := packetfilter.Settings{
		RestrictMetadata: imds.GetEnableImdsRestriction(), InMangle: imds.GetInsertImdsRestrictionRuleToMangleTable(), Program: t.facts.Program,
		IPTables: t.facts.IPTables,
	}
	if localDNS(t) {
		s.LocalDNS = localdns.Addresses()
	}
	rs, err := packetfilter.Resources(s)
	if err != nil {
		return err
	}
	field := ""
	if imds.GetEnableImdsRestriction() {
		field = "imds_restriction_config"
	}
	t.node = append(t.node, t.add(field, rs...)...)
	return nil
}

// ssh comes before kubelet: with a server that is open the machine is no node.
func (t *translation) ssh() error {
	server := ssh.Server{Program: t.facts.SSHServer, Includes: t.facts.SSHIncludes, HasUnit: t.facts.HasVendorUnit}
	switch {
	case !sshStays(t):
		t.node = append(t.node, t.add("enable_ssh", ssh.Off(server)...)...)
	case !keysStay(t):
		t.node = append(t.node, t.add("disable_pubkey_auth", ssh.WithoutKeys(server)...)...)
	}
	return nil
}
