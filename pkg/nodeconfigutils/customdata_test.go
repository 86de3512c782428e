package nodeconfigutils_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

func TestGolden(t *testing.T) {
	cfg := sample(t, "minimal")
	multi, err := nodeconfigutils.CustomData(cfg)
	golden(t, "customdata.mime", decoded(t, multi, err))
	flatcar, err := nodeconfigutils.CustomDataFlatcar(cfg)
	golden(t, "ignition.json", decoded(t, flatcar, err))
	plain, err := nodeconfigutils.CloudConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "cloud-config.yaml", []byte(plain))
}

func TestSameConfigurationSameBytes(t *testing.T) {
	cfg := sample(t, "full")
	first, err := nodeconfigutils.GetNodeBootstrapping(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		again, err := nodeconfigutils.GetNodeBootstrapping(proto.CloneOf(cfg))
		if err != nil || *again != *first {
			t.Fatalf("differs, %v", err)
		}
	}
	if first.CSE != "/opt/azure/containers/aks-node-controller provision-wait" {
		t.Error(first.CSE)
	}
}

// parts reads the document as a mail reader does.
func parts(t *testing.T, document []byte) map[string]string {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		t.Fatal(kind, err)
	}
	out := map[string]string{}
	r := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		out[kind] = string(content)
	}
}

func TestCustomDataHasTwoParts(t *testing.T) {
	data, err := nodeconfigutils.CustomData(sample(t, "full"))
	document := decoded(t, data, err)
	got := parts(t, document)
	if !strings.HasPrefix(got["text/cloud-boothook"], "#cloud-boothook\n#!/bin/sh\n") {
		t.Error("no boothook")
	}
	if !strings.HasPrefix(got["text/cloud-config"], "#cloud-config\n") {
		t.Error("no cloud-config")
	}
	for line := range strings.Lines(string(document)) {
		if len(line) > 998 {
			t.Errorf("a line of %d characters is not 7bit", len(line))
		}
	}
}

func TestTooLarge(t *testing.T) {
	cfg := sample(t, "minimal")
	cfg.MessageOfTheDay = base64.StdEncoding.EncodeToString(make([]byte, 40000))
	for name, generate := range map[string]func() (string, error){
		"multipart":    func() (string, error) { return nodeconfigutils.CustomData(cfg) },
		"ignition":     func() (string, error) { return nodeconfigutils.CustomDataFlatcar(cfg) },
		"cloud-config": func() (string, error) { return nodeconfigutils.CloudConfig(cfg) },
	} {
		_, err := generate()
		var size *nodeconfigutils.SizeError
		if !errors.As(err, &size) || size.Limit != 87380 || size.Size <= size.Limit {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBootstrappingOfAnInvalidConfiguration(t *testing.T) {
	cfg := sample(t, "minimal")
	cfg.KubernetesVersion = ""
	if _, err := nodeconfigutils.GetNodeBootstrapping(cfg); err == nil || !strings.Contains(err.Error(), "kubernetes_version: Required") {
		t.Error(err)
	}
}

// The documents hold the configuration itself.
func TestPayloads(t *testing.T) {
	cfg := sample(t, "full")
	want, err := nodeconfigutils.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := nodeconfigutils.CloudConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var cloud struct {
		WriteFiles []struct{ Content, Permissions string } `json:"write_files"`
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(plain, "#cloud-config\n")), &cloud); err != nil {
		t.Fatal(err)
	}
	got, err := base64.StdEncoding.DecodeString(cloud.WriteFiles[0].Content)
	if err != nil || !bytes.Equal(got, want) || cloud.WriteFiles[0].Permissions != "0600" {
		t.Error("cloud-config holds something else", err)
	}
	flatcar, err := nodeconfigutils.CustomDataFlatcar(cfg)
	if !bytes.Contains(decoded(t, flatcar, err), []byte(base64.StdEncoding.EncodeToString(want))) {
		t.Error("ignition holds something else")
	}
}
