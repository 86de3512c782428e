package contract

import (
	"errors"
	"testing"

	"github.com/berth-dev/berth/internal/component"
	"github.com/berth-dev/berth/internal/contract/node"
	"github.com/berth-dev/berth/internal/desired"
)

func TestDecode(t *testing.T) {
	const osc = "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: OperatingSystemConfig\n"
	c, err := Decode([]byte(osc + "spec: {units: [{name: a.service}], future: 1}"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.Translate(component.Facts{})
	if err != nil || c.Kind() != OperatingSystemConfig || len(c.Notes()) != 1 || st.Owner != desired.OwnerOSC || c.Terms() != TermsOf(nil) {
		t.Errorf("%v %v %v %v %v", err, c.Kind(), c.Notes(), st, c.Terms())
	}
	if c, err := Decode([]byte(osc + "spec: 7")); err == nil || c != nil {
		t.Errorf("taken: %v", c)
	}
	_, err = Decode([]byte(`{"apiVersion":"berth.dev/v1alpha1","kind":"NodeConfig"}`))
	if _, ok := errors.AsType[*node.DocumentError](err); !ok {
		t.Error(err)
	}
}
