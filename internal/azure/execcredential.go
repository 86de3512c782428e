package azure

import (
	"encoding/json"
	"fmt"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
)

// ExecInfo is the variable in which a program that calls a credential plugin says
// what it understands.
const ExecInfo = "KUBERNETES_EXEC_INFO"

// Versions of the interface of credential plugins. What is printed is the same in
// both.
const (
	execV1      = "client.authentication.k8s.io/v1"
	execV1beta1 = "client.authentication.k8s.io/v1beta1"
	execKind    = "ExecCredential"
)

// ExecVersion is the version of the interface that the caller asks for; a text that
// is empty, where a person calls, asks for v1.
func ExecVersion(info string) (string, error) {
	if info == "" {
		return execV1, nil
	}
	var asked meta.TypeMeta
	if err := json.Unmarshal([]byte(info), &asked); err != nil {
		return "", fmt.Errorf("%s can't be read: %w", ExecInfo, err)
	}
	if asked.Kind != execKind || asked.APIVersion != execV1 && asked.APIVersion != execV1beta1 {
		return "", fmt.Errorf("%s asks for %q %q: expected %s of %s or %s", ExecInfo, asked.APIVersion, asked.Kind, execKind, execV1, execV1beta1)
	}
	return asked.APIVersion, nil
}

// ExecCredential is what a credential plugin prints. The time at which the caller
// asks again is that of the renewal, so that it never shows a token that expires on
// the way.
func (c Credential) ExecCredential(version string) ([]byte, error) {
	renew := meta.NewTime(c.Renew.UTC().Truncate(time.Second))
	b, err := json.Marshal(clientauthentication.ExecCredential{
		TypeMeta: meta.TypeMeta{APIVersion: version, Kind: execKind},
		Status:   &clientauthentication.ExecCredentialStatus{ExpirationTimestamp: &renew, Token: c.Text.Reveal()},
	})
	if err != nil {
		return nil, fmt.Errorf("write credential: %w", err)
	}
	return append(b, '\n'), nil
}
