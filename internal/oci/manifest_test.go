package oci

import (
	"errors"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestParseManifest(t *testing.T) {
	part := `{"digest":"` + someDigest.String() + `","size":1}`
	manifest, index := `"config":`+part+`,"layers":[`+part+`]`, `"manifests":[`+part+`]`
	for name, c := range map[string]struct {
		body, said, want string
		// wrong is what its error says; "" if it is fine.
		wrong string
	}{
		"by its content":       {"{" + manifest + "}", "", v1.MediaTypeImageManifest, ""},
		"index by its content": {"{" + index + "}", "", v1.MediaTypeImageIndex, ""},
		"as said":              {"{" + index + "}", dockerList, dockerList, ""},
		"of a web server":      {`{"mediaType":"` + dockerManifest + `",` + manifest + "}", "application/json", dockerManifest, ""},
		"no JSON":              {"<html>", "", "", "it is no JSON manifest"},
		"wrong shapes":         {`{"layers":"many"}`, "", "", "it is no JSON manifest"},
		"nothing":              {"{}", "", "", "neither a manifest nor an index"},
		"no config":            {`{"layers":[]}`, "", "", "it has no config"},
		"a page":               {"{}", "text/html", "", `its media type is "text/html"`},
		"Docker's first":       {`{"fsLayers":[]}`, "", "", "first schema"},
		"first schema, signed": {"{}", "application/vnd.docker.distribution.manifest.v1+prettyjws", "", "want an OCI or Docker (schema 2)"},
		"two types":            {`{"mediaType":"` + v1.MediaTypeImageIndex + `",` + index + "}", v1.MediaTypeImageManifest, "", "what leads to it says"},
		"type of the other":    {"{" + manifest + "}", dockerList, "", "1 layers and 0 manifests"},
		"both":                 {"{" + manifest + "," + index + "}", "", "", "1 layers and 1 manifests"},
		"index with a config":  {"{" + index + `,"config":` + part + "}", v1.MediaTypeImageIndex, "", "0 layers and 1 manifests"},
		"manifest and index":   {`{"config":` + part + `,"manifests":[]}`, v1.MediaTypeImageManifest, "", "0 layers and 0 manifests"},
		"empty index":          {"{}", v1.MediaTypeImageIndex, "", "0 layers and 0 manifests"},
		"path as digest":       {`{"manifests":[{"digest":"sha256:../../../etc/shadow","platform":null}]}`, "", "", "etc/shadow"},
		"other digest":         {`{"config":{"digest":"md5:1"},"layers":[]}`, "", "", "md5:1"},
		"negative size":        {`{"config":{"digest":"` + someDigest.String() + `","size":-1}}`, "", "", "a size of -1 bytes"},
		"endless blob":         {`{"config":` + strings.Replace(part, ":1}", ":1099511627777}", 1) + "}", "", "", "a size of 1099511627777 bytes"},
	} {
		m, err := ParseManifest([]byte(c.body), c.said)
		if c.wrong == "" && (err != nil || m.MediaType != c.want) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %s", name, err, c.wrong)
		}
	}
}

// FuzzManifest: what is taken is one of the two, and all it lists can be asked for.
func FuzzManifest(f *testing.F) {
	part := `{"digest":"` + someDigest.String() + `","size":1,"platform":{"os":"linux","architecture":"arm","variant":"v7"}}`
	f.Add([]byte(`{"config":`+part+`,"layers":[`+part+`]}`), "")
	f.Add([]byte(`{"mediaType":"`+v1.MediaTypeImageIndex+`","manifests":[`+part+`,{"digest":"sha256:"}]}`), dockerList)
	f.Add([]byte(`{"manifests":[`+part+","+part+`]}`), "application/json")
	f.Fuzz(func(t *testing.T, body []byte, said string) {
		m, err := ParseManifest(body, said)
		if err != nil {
			return
		}
		if m.IsIndex() != (m.Config == nil) || m.IsIndex() && m.Layers != nil || !m.IsIndex() && m.Manifests != nil || !isKnown(m.MediaType) {
			t.Fatalf("%+v", m)
		}
		for _, d := range append(m.Layers, m.Manifests...) {
			if d.Size < 0 || !isSHA256(d.Digest) {
				t.Errorf("%+v", d)
			}
		}
		if !m.IsIndex() {
			return
		}
		d, err := Linux("arm64").choose(Node{Manifest: m})
		if e := (*PlatformError)(nil); err != nil && !errors.As(err, &e) {
			t.Errorf("%v", err)
		}
		if err == nil && d.Platform != nil && !Linux("arm64").Runs(*d.Platform) {
			t.Errorf("chose %+v", d)
		}
	})
}
