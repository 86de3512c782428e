package apiserver

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/plugin/pkg/client/auth/exec"
	"k8s.io/client-go/transport"
)

// credential puts what there is on each request. A plugin's token is asked for when it is
// needed, and again where the server does not know it.
func (a Access) credential(next http.RoundTripper) (http.RoundTripper, error) {
	if a.Plugin == nil || a.Token != "" || len(a.Certificate) > 0 {
		return bearer{a.Token, next}, nil
	}
	plugin, err := exec.GetAuthenticator(a.Plugin, nil)
	if err != nil {
		return nil, fmt.Errorf("credential plugin: %w", err)
	}
	c := &transport.Config{}
	if err := plugin.UpdateTransportConfig(c); err != nil {
		return nil, fmt.Errorf("credential plugin: %w", err)
	}
	return c.WrapTransport(next), nil
}
