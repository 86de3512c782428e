package node

import (
	"fmt"
	"reflect"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/internal/desired"
	"github.com/berth-dev/berth/internal/yamltext"
)

// View is a document with the defaults, secrets redacted.
func View(doc *Document) *v1alpha1.NodeConfig {
	out := reflect.New(reflect.TypeFor[v1alpha1.NodeConfig]())
	out.Elem().Set(redacted(reflect.ValueOf(*doc.Config)))
	return out.Interface().(*v1alpha1.NodeConfig)
}

var secretType = reflect.TypeFor[v1alpha1.Secret]()

// redacted is a copy of a value as far as secrets stand in it.
func redacted(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(redacted(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out.Field(i).Set(redacted(v.Field(i)))
		}
	default:
		if v.Type() == secretType && v.String() != "" {
			out.SetString(desired.Redact([]byte(v.String())))
		}
	}
	return out
}

// Text is a document as YAML.
func Text(c *v1alpha1.NodeConfig) ([]byte, error) {
	b, err := yamltext.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write NodeConfig: %w", err)
	}
	return b, nil
}
