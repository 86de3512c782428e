package aks

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
)

// kubeletNames are the fields whose lowerCamel name is not the one that kubelet
// reads.
var kubeletNames = map[protoreflect.Name]string{
	"cache_ttl":              "cacheTTL",
	"cache_authorized_ttl":   "cacheAuthorizedTTL",
	"cache_unauthorized_ttl": "cacheUnauthorizedTTL",
}

// kubeletConfiguration is the contract's message as KubeletConfiguration. What a
// field without presence can't tell from absence (false, 0, "") is absent;
// optional fields are there when they are set, whatever their value.
func kubeletConfiguration(c *aksnodeconfigv1.KubeletConfigFileConfig) (json.RawMessage, error) {
	b, err := json.Marshal(jsonObject(c.ProtoReflect()))
	if err != nil {
		return nil, fmt.Errorf("kubelet_config.kubelet_config_file_config: %w", err)
	}
	return b, nil
}

func jsonObject(m protoreflect.Message) map[string]any {
	out := map[string]any{}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		name, ok := kubeletNames[fd.Name()]
		if !ok {
			name = fd.JSONName()
		}
		out[name] = jsonValue(fd, v)
		return true
	})
	return out
}

func jsonValue(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch {
	case fd.IsMap():
		out := map[string]any{}
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			out[k.String()] = v.Interface()
			return true
		})
		return out
	case fd.IsList():
		out := []any{}
		for i := range v.List().Len() {
			out = append(out, v.List().Get(i).Interface())
		}
		return out
	case fd.Message() != nil:
		return jsonObject(v.Message())
	}
	return v.Interface()
}
