package azure

import (
	"testing"

	"github.com/berth-dev/berth/internal/component/proxy"
	"github.com/berth-dev/berth/internal/host/memory"
)

// A proxy that the environment names goes before the document's.
func TestRecordedProxy(t *testing.T) {
	h := memory.New()
	h.Put(proxy.VariablesFile, "HTTP_PROXY=\"http://proxy.example\"\n", 0o600)
	for _, name := range append(proxyVariables, "") {
		via, err := recordedProxy(h, func(v string) string {
			if v == name {
				return "http://another.example"
			}
			return ""
		})
		if err != nil || (via == nil) != (name != "") || via != nil && via.HTTPProxy.Reveal() != "http://proxy.example" {
			t.Errorf("%q: %+v, %v", name, via, err)
		}
	}
	if via, err := recordedProxy(memory.New(), func(string) string { return "" }); via != nil || err != nil {
		t.Errorf("%+v, %v", via, err)
	}
}
