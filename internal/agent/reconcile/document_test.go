package reconcile

import (
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOf(t *testing.T) {
	const sum = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of x
	for name, c := range map[string]struct {
		data        map[string][]byte
		annotations map[string]string
		checksum    string
		serial      bool
	}{
		"published":     {map[string][]byte{DataKey: []byte("x")}, map[string]string{ChecksumAnnotation: "abc"}, "abc", false},
		"no annotation": {map[string][]byte{DataKey: []byte("x")}, nil, sum, false},
		"serial":        {map[string][]byte{DataKey: []byte("x")}, map[string]string{SerialAnnotation: "true"}, sum, true},
		"not serial":    {map[string][]byte{DataKey: []byte("x")}, map[string]string{SerialAnnotation: "yes"}, sum, false},
		"nothing":       {nil, map[string]string{ChecksumAnnotation: "abc"}, "", false},
		"empty":         {map[string][]byte{DataKey: nil}, nil, "", false},
		"another key":   {map[string][]byte{"script": []byte("x")}, nil, "", false},
	} {
		d, err := Of(&core.Secret{ObjectMeta: meta.ObjectMeta{Annotations: c.annotations}, Data: c.data})
		if (err != nil) != (c.checksum == "") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err == nil && (d.Checksum != c.checksum || d.Serial != c.serial || d.Sum != sum) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
