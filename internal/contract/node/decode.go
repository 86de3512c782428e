package node

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
)

// Decode reads a document, gives it the defaults and validates it. Its error is a
// *DocumentError with every error.
func Decode(data []byte) (*Document, error) {
	doc, err := read(data)
	if err != nil {
		return nil, err
	}
	doc.saysDomain = doc.Config.Networking.ClusterDomain != ""
	setDefaults(doc.Config)
	v := &validation{config: doc.Config}
	v.document()
	if err := refusal(v.errs, doc.lines); err != nil {
		return nil, err
	}
	return doc, nil
}

// read reads a document as it is.
func read(data []byte) (*Document, error) {
	tree, err := parse(data)
	if err != nil {
		return nil, refusal(field.ErrorList{invalid(nil, err.Error())}, nil)
	}
	f := &filler{lines: lines{}}
	doc := &Document{Config: &v1alpha1.NodeConfig{}, lines: f.lines}
	f.fill(reflect.ValueOf(doc.Config).Elem(), tree, nil)
	if err := refusal(f.errs, f.lines); err != nil {
		return nil, err
	}
	return doc, nil
}
