package config

import (
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the published configuration calls itself.
const (
	APIVersion = "nodeagent.config.gardener.cloud/v1alpha1"
	Kind       = "NodeAgentConfiguration"
)

// NodeAgent is the published NodeAgentConfiguration.
type NodeAgent struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	ClientConnection ClientConnection `json:"clientConnection,omitzero"`
	LogLevel         string           `json:"logLevel,omitempty"`
	LogFormat        string           `json:"logFormat,omitempty"`
	Server           Server           `json:"server,omitzero"`
	Debugging        *Debugging       `json:"debugging,omitempty"`
	FeatureGates     map[string]bool  `json:"featureGates,omitempty"`
	APIServer        APIServer        `json:"apiServer"`
	Bootstrap        *Bootstrap       `json:"bootstrap,omitempty"`
	Controllers      Controllers      `json:"controllers"`
}

// ClientConnection has no effect but for Kubeconfig: the agent paces itself.
type ClientConnection struct {
	// Kubeconfig stands in for a certificate of the agent's own.
	Kubeconfig         string  `json:"kubeconfig,omitempty"`
	AcceptContentTypes string  `json:"acceptContentTypes,omitempty"`
	ContentType        string  `json:"contentType,omitempty"`
	QPS                float32 `json:"qps,omitempty"`
	Burst              int32   `json:"burst,omitempty"`
}

// Server are the addresses of health and metrics.
type Server struct {
	HealthProbes *Address `json:"healthProbes,omitempty"`
	Metrics      *Address `json:"metrics,omitempty"`
}

// Address is where something listens.
type Address struct {
	BindAddress string `json:"bindAddress"`
	Port        int    `json:"port"`
}

// Debugging has no effect here.
type Debugging struct {
	EnableProfiling           *bool `json:"enableProfiling,omitempty"`
	EnableContentionProfiling *bool `json:"enableContentionProfiling,omitempty"`
}

// APIServer is the cluster.
type APIServer struct {
	// Server is a URL.
	Server string `json:"server"`
	CAFile string `json:"caFile"`
}

// Bootstrap is for the first start.
type Bootstrap struct {
	// KubeletDataVolumeSize is in bytes.
	KubeletDataVolumeSize *int64 `json:"kubeletDataVolumeSize,omitempty"`
}

// Controllers are the settings of each.
type Controllers struct {
	OperatingSystemConfig OperatingSystemConfig `json:"operatingSystemConfig"`
	Token                 Token                 `json:"token"`
	SystemdUnitCheck      SystemdUnitCheck      `json:"systemdUnitCheck,omitzero"`
}

// OperatingSystemConfig names the Secret with the machine's configuration.
type OperatingSystemConfig struct {
	SyncPeriod        *meta.Duration `json:"syncPeriod,omitempty"`
	SecretName        string         `json:"secretName"`
	KubernetesVersion string         `json:"kubernetesVersion"`
}

// Token are Secrets whose tokens are files of the machine.
type Token struct {
	SyncConfigs []TokenSecret  `json:"syncConfigs,omitempty"`
	SyncPeriod  *meta.Duration `json:"syncPeriod,omitempty"`
}

// TokenSecret is one of them.
type TokenSecret struct {
	SecretName string `json:"secretName"`
	Path       string `json:"path"`
}

// SystemdUnitCheck is how often units are looked at.
type SystemdUnitCheck struct {
	SyncPeriod     *meta.Duration `json:"syncPeriod,omitempty"`
	StuckThreshold *meta.Duration `json:"stuckThreshold,omitempty"`
}

// complete sets the published defaults, but for the address of health and metrics:
// nothing outside the node asks for them.
func (c *NodeAgent) complete() {
	setString(&c.LogLevel, "info")
	setString(&c.LogFormat, "json")
	setString(&c.ClientConnection.ContentType, "application/vnd.kubernetes.protobuf")
	setAddress(&c.Server.HealthProbes, 2751)
	setAddress(&c.Server.Metrics, 2752)
	setPeriod(&c.Controllers.OperatingSystemConfig.SyncPeriod, 10*time.Minute)
	setPeriod(&c.Controllers.Token.SyncPeriod, time.Hour)
	setPeriod(&c.Controllers.SystemdUnitCheck.SyncPeriod, time.Minute)
	setPeriod(&c.Controllers.SystemdUnitCheck.StuckThreshold, 5*time.Minute)
}

func setString(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

func setPeriod(p **meta.Duration, value time.Duration) {
	if *p == nil {
		*p = &meta.Duration{Duration: value}
	}
}

func setAddress(a **Address, port int) {
	if *a == nil {
		*a = &Address{}
	}
	setString(&(*a).BindAddress, "127.0.0.1")
	if (*a).Port == 0 {
		(*a).Port = port
	}
}
