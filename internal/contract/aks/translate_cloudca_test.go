package aks

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/component/cloudca"
	"github.com/berth-dev/berth/internal/component/containerd"
	"github.com/berth-dev/berth/internal/desired"
)

// inCloud is a configuration that fetches, for a cloud of this name.
func inCloud(t *testing.T, name, location string) *aksnodeconfigv1.Configuration {
	t.Helper()
	cfg := sample(t, "minimal.json")
	cfg.CustomCloudConfig = &aksnodeconfigv1.CustomCloudConfig{CustomCloudEnvName: name}
	cfg.ClusterConfig.Location = location
	cfg.KubeBinaryConfig = &aksnodeconfigv1.KubeBinaryConfig{KubeBinaryUrl: "https://x.example/kubernetes.tar.gz"}
	return cfg
}

// TestCloudReferences: the cloud is asked where the document says that it has certificate
// authorities of its own, and for no image.
func TestCloudReferences(t *testing.T) {
	image := inCloud(t, "akscustom", "westeurope")
	image.PreProvisionOnly = true
	for name, c := range map[string]struct {
		cfg  *aksnodeconfigv1.Configuration
		want *component.CloudCA
	}{
		"of its own":       {inCloud(t, "AKSCustom", "westeurope"), &component.CloudCA{Location: "westeurope", Known: cloudca.Prefix}},
		"legacy":           {inCloud(t, "akscustom", "USSec West"), &component.CloudCA{Legacy: true, Location: "USSec West", Known: cloudca.Prefix}},
		"another name":     {inCloud(t, "other", "ussecwest"), nil},
		"none":             {sample(t, "minimal.json"), nil},
		"image of a cloud": {image, nil},
	} {
		if diff := cmp.Diff(c.want, References(&Document{Config: c.cfg}).CloudCA); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestCloudTrust: what the cloud tells is trusted by each download, and by the machine before
// containerd starts; in another cloud it is nothing.
func TestCloudTrust(t *testing.T) {
	told, err := base64.StdEncoding.DecodeString(certificate(t))
	if err != nil {
		t.Fatal(err)
	}
	f := machine
	f.CloudCAs = []string{string(told)}
	rs, err := cloudca.Anchors(f.CloudCAs)
	if err != nil {
		t.Fatal(err)
	}
	anchor := rs[0].ID()
	st := translate(t, inCloud(t, "akscustom", "westeurope"), f)
	if st.Lookup(anchor) == nil || st.Lookup(desired.UnitID(cloudca.Timer)) == nil {
		t.Fatal("no certificate, or nothing that asks again")
	}
	if u := st.Lookup(desired.UnitID(containerd.Unit)); !slices.Contains(u.Order().After, anchor) {
		t.Errorf("containerd starts after %v", u.Order().After)
	}
	fetched := 0
	for _, r := range st.Resources {
		if a, ok := r.(*desired.Artifact); ok && slices.ContainsFunc(a.URLs, func(u string) bool { return strings.HasPrefix(u, "https:") }) {
			if fetched++; a.Via == nil || !slices.Contains(a.Via.CAs, string(told)) {
				t.Errorf("%s is fetched by %+v", a.ID(), a.Via)
			}
		}
	}
	if fetched == 0 {
		t.Error("nothing is fetched")
	}
	st = translate(t, inCloud(t, "other", "westeurope"), f)
	if st.Lookup(anchor) != nil || st.Lookup(desired.UnitID(cloudca.Timer)) != nil {
		t.Error("another cloud's certificates are trusted")
	}
	f.CloudCAs = []string{"no certificate"}
	if _, err := Translate(&Document{Config: inCloud(t, "akscustom", "westeurope")}, f); err == nil {
		t.Error("what is no certificate is trusted")
	}
}
