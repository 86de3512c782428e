package credentialprovider

import kubeletv1 "k8s.io/kubelet/config/v1"

// PodIdentity is with what the provider turns the token of a pod's service account
// into a login to a registry.
type PodIdentity struct {
	// SNI is the name under which the cluster's local authority answers at APIServer, a
	// DNS name or an IP address.
	SNI, APIServer string
	// ClientID and TenantID count where a service account names none; empty: no default.
	ClientID, TenantID string
}

// args are the published ones, in the published order.
func (i *PodIdentity) args() []string {
	out := []string{"--ib-sni-name=" + i.SNI}
	if i.ClientID != "" {
		out = append(out, "--ib-default-client-id="+i.ClientID)
	}
	if i.TenantID != "" {
		out = append(out, "--ib-default-tenant-id="+i.TenantID)
	}
	return append(out, "--ib-apiserver-ip="+i.APIServer)
}

// tokenAttributes are what kubelet asks the API server for before it calls the provider.
func tokenAttributes() *kubeletv1.ServiceAccountTokenAttributes {
	required := false
	return &kubeletv1.ServiceAccountTokenAttributes{
		ServiceAccountTokenAudience:          "api://AKSIdentityBinding",
		CacheType:                            kubeletv1.ServiceAccountServiceAccountTokenCacheType,
		RequireServiceAccount:                &required,
		OptionalServiceAccountAnnotationKeys: []string{"kubernetes.azure.com/acr-client-id"},
	}
}
