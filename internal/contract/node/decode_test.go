package node

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// bad is a document with one error: edits of minimal.yaml, a path and its value.
type bad struct {
	edits map[string]any
	// want is the path of the error; line and detail are in the text of the error.
	want, detail string
	// beyond: a JSON Schema can't see it.
	beyond bool
}

//go:embed testdata/ca.pem
var aCertificate string

const certificateOfNobody = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

var badInputs = map[string]bad{
	"version of the API":   {edits: map[string]any{"apiVersion": "berth.dev/v2"}, want: "apiVersion"},
	"kind":                 {edits: map[string]any{"kind": "NodeConfigs"}, want: "kind"},
	"unknown field":        {edits: map[string]any{"node.maxpods": 3}, want: "node.maxpods", detail: "no such field"},
	"unknown section":      {edits: map[string]any{"kubelet": map[string]any{}}, want: "kubelet"},
	"a number as a string": {edits: map[string]any{"node.maxPods": "40"}, want: "node.maxPods", detail: "got a string"},
	"a string as a number": {edits: map[string]any{"components.kubernetes.version": 1.36}, want: "components.kubernetes.version", detail: "quotes"},
	"a list as an object":  {edits: map[string]any{"node.labels": []any{"a"}}, want: "node.labels"},
	"a label as a boolean": {edits: map[string]any{"node.labels": map[string]any{"a.b/c": true}}, want: "node.labels[a.b/c]"},
	"huge number":          {edits: map[string]any{"node.maxPods": 1 << 40}, want: "node.maxPods"},

	"no server":            {edits: map[string]any{"cluster.server": nil}, want: "cluster.server", beyond: true},
	"server without TLS":   {edits: map[string]any{"cluster.server": "http://10.0.0.1"}, want: "cluster.server"},
	"server with path":     {edits: map[string]any{"cluster.server": "https://a/b"}, want: "cluster.server"},
	"server with port 0":   {edits: map[string]any{"cluster.server": "https://a:0"}, want: "cluster.server", beyond: true},
	"server with odd name": {edits: map[string]any{"cluster.server": "https://a_b"}, want: "cluster.server", beyond: true},
	"no CA":                {edits: map[string]any{"cluster.caFile": nil}, want: "cluster", beyond: true},
	"two CAs":              {edits: map[string]any{"cluster.caCertHash": "sha256:" + strings.Repeat("0", 64)}, want: "cluster", beyond: true},
	"relative CA":          {edits: map[string]any{"cluster.caFile": "ca.pem"}, want: "cluster.caFile"},
	"CA is none":           {edits: map[string]any{"cluster.caFile": nil, "cluster.ca": "hello"}, want: "cluster.ca", beyond: true},
	"CA can't be read":     {edits: map[string]any{"cluster.caFile": nil, "cluster.ca": certificateOfNobody}, want: "cluster.ca", beyond: true},
	"odd pin":              {edits: map[string]any{"cluster.caFile": nil, "cluster.caCertHash": "sha256:12"}, want: "cluster.caCertHash"},
	"pin without token": {edits: map[string]any{"cluster.caFile": nil, "cluster.caCertHash": "sha256:" + strings.Repeat("0", 64),
		"identity": map[string]any{"clientCertificate": map[string]any{"certFile": "/a", "keyFile": "/b"}}}, want: "cluster.caCertHash", beyond: true},
	"odd resource id":        {edits: map[string]any{"cluster.resourceId": "/subscriptions/x"}, want: "cluster.resourceId", beyond: true},
	"location of no cluster": {edits: map[string]any{"cluster.location": "westeurope"}, want: "cluster.location", beyond: true},
	"cluster of Azure alone": {edits: map[string]any{"cluster.server": nil, "cluster.resourceId": "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/a/providers/Microsoft.ContainerService/managedClusters/b"}, want: "cluster.server", detail: "Azure", beyond: true},

	"no identity":         {edits: map[string]any{"identity": map[string]any{}}, want: "identity", detail: "one of bootstrapToken", beyond: true},
	"two identities":      {edits: map[string]any{"identity.clientCertificate": map[string]any{"certFile": "/a", "keyFile": "/b"}}, want: "identity", beyond: true},
	"no token":            {edits: map[string]any{"identity.bootstrapToken": map[string]any{}}, want: "identity.bootstrapToken", beyond: true},
	"two tokens":          {edits: map[string]any{"identity.bootstrapToken.tokenEnv": "T"}, want: "identity.bootstrapToken", beyond: true},
	"token inline":        {edits: map[string]any{"identity.bootstrapToken": map[string]any{"token": "abcdef.0123456789abcdef"}}, want: "identity.bootstrapToken.token", detail: "allowInline", beyond: true},
	"odd token":           {edits: map[string]any{"identity.allowInline": true, "identity.bootstrapToken": map[string]any{"token": "SECRETSECRET"}}, want: "identity.bootstrapToken.token"},
	"odd variable":        {edits: map[string]any{"identity.bootstrapToken": map[string]any{"tokenEnv": "A-B"}}, want: "identity.bootstrapToken.tokenEnv"},
	"relative token":      {edits: map[string]any{"identity.bootstrapToken.tokenFile": "token"}, want: "identity.bootstrapToken.tokenFile"},
	"no key":              {edits: map[string]any{"identity": map[string]any{"clientCertificate": map[string]any{"certFile": "/a"}}}, want: "identity.clientCertificate.keyFile"},
	"tags as a list":      {edits: arcWith("tags", map[string]any{"a": "b,c=d"}), want: "identity.arc.tags[a]", detail: "commas", beyond: true},
	"tag without name":    {edits: arcWith("tags", map[string]any{"": "b"}), want: "identity.arc.tags[]", detail: "name", beyond: true},
	"berth's own tag":     {edits: arcWith("tags", map[string]any{"Berth-Registration": "c"}), want: "identity.arc.tags[Berth-Registration]", detail: "berth itself", beyond: true},
	"many tags":           {edits: arcWith("tags", manyTags()), want: "identity.arc.tags", detail: "49", beyond: true},
	"long tag":            {edits: arcWith("tags", map[string]any{strings.Repeat("a", 513): "b"}), want: "identity.arc.tags[" + strings.Repeat("a", 513) + "]", detail: "1 to 512", beyond: true},
	"long value of a tag": {edits: arcWith("tags", map[string]any{"a": strings.Repeat("b", 257)}), want: "identity.arc.tags[a]", detail: "256", beyond: true},
	"odd tag":             {edits: arcWith("tags", map[string]any{"a=b": "c"}), want: "identity.arc.tags[a=b]", detail: "name", beyond: true},
	"direct token":        {edits: map[string]any{"identity.direct": true}, want: "identity.direct", detail: "managedIdentity", beyond: true},
	"direct login":        {edits: map[string]any{"identity": map[string]any{"azureCLI": map[string]any{}, "direct": true}}, want: "identity.direct", detail: "as long as it runs", beyond: true},
	"direct variable": {edits: map[string]any{"identity": map[string]any{"direct": true, "servicePrincipal": map[string]any{"tenantId": "00000000-0000-0000-0000-000000000001",
		"clientId": "00000000-0000-0000-0000-000000000001", "clientSecretEnv": "A"}}}, want: "identity.direct", beyond: true},
	"managedIdentity": {edits: map[string]any{"identity": map[string]any{"managedIdentity": map[string]any{"tenantId": "x"}}}, want: "identity.managedIdentity.tenantId", detail: "GUID"},
	"arc":             {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{"tenantId": "x"}}}, want: "identity.arc.tenantId", detail: "GUID"},
	"registered by nobody": {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{"subscriptionId": "00000000-0000-0000-0000-000000000001", "resourceGroup": "g", "location": "l",
		"registration": map[string]any{}}}}, want: "identity.arc.registration", beyond: true},
	"registered nowhere": {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{"subscriptionId": "00000000-0000-0000-0000-000000000001", "resourceGroup": "g",
		"registration": map[string]any{"azureCLI": map[string]any{}}}}}, want: "identity.arc.location", beyond: true},
	"role on nothing": {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{"subscriptionId": "00000000-0000-0000-0000-000000000001", "resourceGroup": "g", "location": "l",
		"registration": map[string]any{"azureCLI": map[string]any{}, "assignRole": true}}}}, want: "identity.arc.registration.assignRole", beyond: true},
	"agent of nobody":          {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{"agent": map[string]any{}}}}, want: "identity.arc.agent", detail: "registration", beyond: true},
	"agent without digest":     {edits: arcWith("agent", map[string]any{"urls": []any{"https://a/azcmagent.deb"}}), want: "identity.arc.agent.urls[0]", detail: "digest", beyond: true},
	"agent with an odd digest": {edits: arcWith("agent", map[string]any{"urls": []any{"https://a/azcmagent.deb"}, "sha256": "abc"}), want: "identity.arc.agent.sha256", beyond: true},
	"agent by an odd URL":      {edits: arcWith("agent", map[string]any{"urls": []any{"ftp://a/azcmagent.deb#sha256=" + strings.Repeat("a", 64)}}), want: "identity.arc.agent.urls[0]", beyond: true},
	"odd authority":            {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{}}, "azure": map[string]any{"authority": "http://a"}}, want: "azure.authority"},
	"odd manager":              {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{}}, "azure": map[string]any{"resourceManager": "https://a/b"}}, want: "azure.resourceManager"},
	"odd server id":            {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{}}, "azure": map[string]any{"serverId": "aks"}}, want: "azure.serverId"},
	"azure of nobody":          {edits: map[string]any{"azure": map[string]any{"authority": "https://a"}}, want: "azure", detail: "none of Azure", beyond: true},
	"two proofs": {edits: map[string]any{"identity": map[string]any{"servicePrincipal": map[string]any{"tenantId": "00000000-0000-0000-0000-000000000001",
		"clientId": "00000000-0000-0000-0000-000000000002", "clientSecretEnv": "A", "clientCertificateFile": "/a"}}}, want: "identity.servicePrincipal", beyond: true},
	"azureCLI": {edits: map[string]any{"identity": map[string]any{"azureCLI": map[string]any{"tenantId": "x"}}}, want: "identity.azureCLI.tenantId", detail: "GUID"},
	"servicePrincipal": {edits: map[string]any{"identity": map[string]any{"servicePrincipal": map[string]any{
		"tenantId": "00000000-0000-0000-0000-000000000001", "clientId": "00000000-0000-0000-0000-000000000002", "clientSecret": "SECRETSECRET"}}},
		want: "identity.servicePrincipal.clientSecret", detail: "allowInline", beyond: true},
	"servicePrincipal of nobody": {edits: map[string]any{"identity": map[string]any{"servicePrincipal": map[string]any{"clientSecretEnv": "A"}}}, want: "identity.servicePrincipal.tenantId"},

	"secret at no path":      {edits: principal("clientSecretFile", "secret"), want: "identity.servicePrincipal.clientSecretFile"},
	"certificate at no path": {edits: principal("clientCertificateFile", "../cert.pem"), want: "identity.servicePrincipal.clientCertificateFile"},
	"secret in no variable":  {edits: principal("clientSecretEnv", "1-SECRET"), want: "identity.servicePrincipal.clientSecretEnv"},
	"application of no name": {edits: principal("clientId", nil), want: "identity.servicePrincipal.clientId"},
	"application by a name":  {edits: principal("clientId", "app"), want: "identity.servicePrincipal.clientId", detail: "GUID"},
	"tenant by a name":       {edits: principal("tenantId", "contoso"), want: "identity.servicePrincipal.tenantId", detail: "GUID"},
	"managed by a name":      {edits: map[string]any{"identity": map[string]any{"managedIdentity": map[string]any{"clientId": "x"}}}, want: "identity.managedIdentity.clientId", detail: "GUID"},
	"subscription by a name": {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{"subscriptionId": "x"}}}, want: "identity.arc.subscriptionId", detail: "GUID"},
	"registered by two": {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{"subscriptionId": "00000000-0000-0000-0000-000000000001", "resourceGroup": "g", "location": "l",
		"registration": map[string]any{"azureCLI": map[string]any{}, "servicePrincipal": principal("clientSecretEnv", "A")["identity"].(map[string]any)["servicePrincipal"]}}}},
		want: "identity.arc.registration", detail: "only one of", beyond: true},
	"registered by a tenant's name": {edits: map[string]any{"identity": map[string]any{"arc": map[string]any{"subscriptionId": "00000000-0000-0000-0000-000000000001", "resourceGroup": "g", "location": "l",
		"registration": map[string]any{"azureCLI": map[string]any{"tenantId": "x"}}}}}, want: "identity.arc.registration.azureCLI.tenantId", detail: "GUID"},

	"no version":          {edits: map[string]any{"components.kubernetes": map[string]any{}}, want: "components.kubernetes.version"},
	"half a version":      {edits: map[string]any{"components.kubernetes.version": "1.36"}, want: "components.kubernetes.version"},
	"URL without version": {edits: map[string]any{"components.runc": map[string]any{"urls": []any{"https://a/b"}}}, want: "components.runc.version", beyond: true},
	"plain http":          {edits: map[string]any{"components.kubernetes.urls": []any{"http://a/b"}}, want: "components.kubernetes.urls[0]", detail: "digest", beyond: true},
	"no URL":              {edits: map[string]any{"components.kubernetes.urls": []any{"https://a/b", "//SECRETSECRET"}}, want: "components.kubernetes.urls[1]"},
	"odd fragment":        {edits: map[string]any{"components.kubernetes.urls": []any{"https://a/b#md5=1"}}, want: "components.kubernetes.urls[0]", beyond: true},
	"odd digest":          {edits: map[string]any{"components.kubernetes.urls": []any{"https://a/b"}, "components.kubernetes.sha256": "12"}, want: "components.kubernetes.sha256"},
	"digest of nothing":   {edits: map[string]any{"components.kubernetes.sha256": strings.Repeat("0", 64)}, want: "components.kubernetes.sha256", beyond: true},
	"odd image":           {edits: map[string]any{"components.sandboxImage": "A B"}, want: "components.sandboxImage", beyond: true},

	"odd name":             {edits: map[string]any{"node.name": "Edge_7"}, want: "node.name"},
	"label of others":      {edits: map[string]any{"node.labels": map[string]any{"node-role.kubernetes.io/worker": ""}}, want: "node.labels[node-role.kubernetes.io/worker]", beyond: true},
	"odd value of a label": {edits: map[string]any{"node.labels": map[string]any{"a": "-"}}, want: "node.labels[a]", beyond: true},
	"taint without key":    {edits: map[string]any{"node.taints": []any{map[string]any{"effect": "NoSchedule"}}}, want: "node.taints[0].key"},
	"odd key of a taint":   {edits: map[string]any{"node.taints": []any{map[string]any{"key": "a b", "effect": "NoSchedule"}}}, want: "node.taints[0].key", beyond: true},
	"odd effect":           {edits: map[string]any{"node.taints": []any{map[string]any{"key": "a", "effect": "Never"}}}, want: "node.taints[0].effect"},
	"odd value of a taint": {edits: map[string]any{"node.taints": []any{map[string]any{"key": "a", "value": "-", "effect": "NoSchedule"}}}, want: "node.taints[0].value", beyond: true},
	"taint twice": {edits: map[string]any{"node.taints": []any{map[string]any{"key": "a", "effect": "NoSchedule"}, map[string]any{"key": "a", "value": "b", "effect": "NoSchedule"}}},
		want: "node.taints[1]", beyond: true},
	"drain in no time": {edits: map[string]any{"node.drain": map[string]any{"timeout": "0s"}}, want: "node.drain.timeout", detail: "above 0", beyond: true},
	"drain in a word":  {edits: map[string]any{"node.drain": map[string]any{"timeout": "soon"}}, want: "node.drain.timeout", detail: "as 90s or 10m", beyond: true},
	"negative":         {edits: map[string]any{"node.maxPods": -1}, want: "node.maxPods"},
	"odd address":      {edits: map[string]any{"node.nodeIP": "10.0.0.1,10.0.0.2"}, want: "node.nodeIP", beyond: true},
	"odd resource":     {edits: map[string]any{"node.kubeReserved": map[string]any{"gpu": "1"}}, want: "node.kubeReserved[gpu]", beyond: true},
	"odd quantity":     {edits: map[string]any{"node.systemReserved": map[string]any{"cpu": "-1"}}, want: "node.systemReserved[cpu]", beyond: true},
	"managed by Azure": {edits: map[string]any{"cluster.resourceId": "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/a/providers/Microsoft.ContainerService/managedClusters/b",
		"node.labels": map[string]any{"kubernetes.azure.com/managed": "true"}}, want: "node.labels[kubernetes.azure.com/managed]", detail: "expected false", beyond: true},
	"managed without a word": {edits: map[string]any{"cluster.server": "https://one-12345.hcp.westeurope.azmk8s.io:443", "node.labels": map[string]any{"kubernetes.azure.com/managed": ""}},
		want: "node.labels[kubernetes.azure.com/managed]", detail: "expected false", beyond: true},
	"odd kubelet version": {edits: map[string]any{"node.kubeletConfig": map[string]any{"apiVersion": "kubelet.config.k8s.io/v1"}}, want: "node.kubeletConfig.apiVersion", beyond: true},
	"odd kubelet kind":    {edits: map[string]any{"node.kubeletConfig": map[string]any{"kind": "KubeletConfig"}}, want: "node.kubeletConfig.kind", beyond: true},
	"no registration":     {edits: map[string]any{"node.kubeletConfig": map[string]any{"registerNode": false}}, want: "node.kubeletConfig.registerNode", beyond: true},
	"odd driver":          {edits: map[string]any{"node.kubeletConfig": map[string]any{"cgroupDriver": "none"}}, want: "node.kubeletConfig.cgroupDriver", beyond: true},
	"text for kubelet":    {edits: map[string]any{"node.kubeletConfig": "x"}, want: "node.kubeletConfig"},

	"odd mode":         {edits: map[string]any{"networking.mode": "overlay"}, want: "networking.mode"},
	"CIDR of nobody":   {edits: map[string]any{"networking.podCIDRs": []any{"10.0.0.0/24"}}, want: "networking.podCIDRs", beyond: true},
	"odd CIDR":         {edits: map[string]any{"networking.mode": "bridge", "networking.podCIDRs": []any{"10.0.0.1/24"}}, want: "networking.podCIDRs", beyond: true},
	"odd DNS":          {edits: map[string]any{"networking.clusterDNS": []any{"dns"}}, want: "networking.clusterDNS[0]", beyond: true},
	"many DNS":         {edits: map[string]any{"networking.clusterDNS": []any{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}}, want: "networking.clusterDNS"},
	"odd domain":       {edits: map[string]any{"networking.clusterDomain": "a b"}, want: "networking.clusterDomain", beyond: true},
	"odd prefix":       {edits: map[string]any{"artifacts.mirrors": []any{map[string]any{"prefix": "dl.k8s.io", "url": "https://a/"}}}, want: "artifacts.mirrors[0].prefix", beyond: true},
	"no mirror":        {edits: map[string]any{"artifacts.mirrors": []any{map[string]any{"prefix": "https://a/"}}}, want: "artifacts.mirrors[0].url"},
	"odd registry":     {edits: map[string]any{"artifacts.registryMirrors": []any{map[string]any{"registry": "a/b", "url": "https://a"}}}, want: "artifacts.registryMirrors[0].registry", beyond: true},
	"no registry":      {edits: map[string]any{"artifacts.registryMirrors": []any{map[string]any{"url": "https://a"}}}, want: "artifacts.registryMirrors[0].registry"},
	"port of nothing":  {edits: map[string]any{"artifacts.registryMirrors": []any{map[string]any{"registry": "a:70000", "url": "https://a"}}}, want: "artifacts.registryMirrors[0].registry", beyond: true},
	"bare IPv6":        {edits: map[string]any{"artifacts.registryMirrors": []any{map[string]any{"registry": "fd00::1", "url": "https://a"}}}, want: "artifacts.registryMirrors[0].registry", beyond: true},
	"open bracket":     {edits: map[string]any{"artifacts.registryMirrors": []any{map[string]any{"registry": "[fd00::1", "url": "https://a"}}}, want: "artifacts.registryMirrors[0].registry", beyond: true},
	"plain registry":   {edits: map[string]any{"artifacts.registryMirrors": []any{map[string]any{"registry": "a", "url": "http://a"}}}, want: "artifacts.registryMirrors[0].url", beyond: true},
	"odd proxy":        {edits: map[string]any{"proxy.http": "proxy:3128"}, want: "proxy.http", beyond: true},
	"proxy password":   {edits: map[string]any{"proxy.https": "http://me:SECRETSECRET@proxy"}, want: "proxy.https", detail: "allowInline", beyond: true},
	"odd direct":       {edits: map[string]any{"proxy.noProxy": []any{"a b"}}, want: "proxy.noProxy[0]"},
	"trust in no file": {edits: map[string]any{"trust.caFiles": []any{""}}, want: "trust.caFiles[0]"},
	"trust in nothing": {edits: map[string]any{"trust.cas": []any{""}}, want: "trust.cas[0]", beyond: true},
	"trust in a key":   {edits: map[string]any{"trust.cas": []any{"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}}, want: "trust.cas[0]", detail: "PRIVATE KEY", beyond: true},
	"trust cut off":    {edits: map[string]any{"trust.cas": []any{aCertificate + "\n" + "-----BEGIN CERTIFICATE-----\nAAAA\n"}}, want: "trust.cas[0]", detail: "cut off", beyond: true},
	"odd location":     {edits: map[string]any{"cluster.resourceId": "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/a/providers/Microsoft.ContainerService/managedClusters/b", "cluster.location": "west-europe"}, want: "cluster.location", detail: "region", beyond: true},
	"relative trust":   {edits: map[string]any{"trust.caFiles": []any{"ca.pem"}}, want: "trust.caFiles[0]"},
	"trust in nobody":  {edits: map[string]any{"trust.cas": []any{certificateOfNobody}}, want: "trust.cas[0]", beyond: true},
}

// manyTags are more than a resource of Azure has beside berth's own.
func manyTags() map[string]any {
	tags := map[string]any{}
	for i := range maxTags + 1 {
		tags[fmt.Sprint("t", i)] = "v"
	}
	return tags
}

// principal is an application as identity, whole but for one member.
func principal(name string, value any) map[string]any {
	s := map[string]any{"tenantId": "00000000-0000-0000-0000-000000000001", "clientId": "00000000-0000-0000-0000-000000000002"}
	if s[name] == nil {
		s[name] = value
	} else if delete(s, name); value != nil {
		s[name] = value
	}
	if name == "clientId" || name == "tenantId" {
		s["clientSecretEnv"] = "A"
	}
	return map[string]any{"identity": map[string]any{"servicePrincipal": s}}
}

// edited is minimal.yaml with values at paths; nil takes one away.
func edited(t testing.TB, edits map[string]any) []byte {
	t.Helper()
	doc := map[string]any{}
	if err := yaml.Unmarshal(testdata(t, "minimal.yaml"), &doc); err != nil {
		t.Fatal(err)
	}
	for path, v := range edits {
		at, names := doc, strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			if at[name] == nil {
				at[name] = map[string]any{}
			}
			at = at[name].(map[string]any)
		}
		if last := names[len(names)-1]; v == nil {
			delete(at, last)
		} else {
			at[last] = v
		}
	}
	b, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// arcWith are edits that have the machine registered by the Azure CLI.
func arcWith(name string, value any) map[string]any {
	return map[string]any{"identity": map[string]any{"arc": map[string]any{"subscriptionId": guidA, "resourceGroup": "g", "location": "l", name: value,
		"registration": map[string]any{"azureCLI": map[string]any{}}}}}
}

func TestBadInputs(t *testing.T) {
	for name, c := range badInputs {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(edited(t, c.edits))
			e, ok := errors.AsType[*DocumentError](err)
			if !ok {
				t.Fatalf("taken: %v", err)
			}
			if e.List()[0].Field != c.want || !strings.Contains(e.Error(), c.detail) {
				t.Errorf("%v, want an error of %s with %q", e, c.want, c.detail)
			}
			if strings.Contains(e.Error(), "SECRETSECRET") {
				t.Errorf("it shows a secret: %v", e)
			}
		})
	}
}

// An error says at which line it is, also one that only validation finds, and one of
// what is not there.
func TestLines(t *testing.T) {
	const head = "apiVersion: berth.dev/v1alpha1\nkind: NodeConfig\n"
	for text, want := range map[string]string{
		head + "cluster:\n  server: http://a\n":            "line 4: cluster.server",
		head + "cluster:\n  caFile: /a\n":                  "line 4: cluster.server",
		head + "node:\n  labels:\n    a.b/c: '-'\n":        "line 5: node.labels[a.b/c]",
		head + "node:\n  a: 1\n  b: 2\n":                   "line 5: node.b",
		head + "node:\n  name: a\n  name: b\n":             "line 5: node.name: Duplicate",
		head + "node: {kubeletConfig: {a: &x 1,\n b: *x}}": "line 4: node.kubeletConfig.b",
	} {
		if _, err := Decode([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestNoDocument(t *testing.T) {
	for _, text := range []string{"", "[]", "a: b: c", "{", "---\na: 1\n---\nb: 1\n", "\x00"} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q: taken", text)
		}
	}
}

// Upper and lower case of a resource id are the same, and of an AKS cluster's node
// the cloud is told to leave it alone.
func TestResourceID(t *testing.T) {
	st := translated(t, decoded(t, "full.yaml"), machineOf(t))
	if got := fmt.Sprint(st.Lookup("node:edge-7.example")); !strings.Contains(got, "kubernetes.azure.com/managed:false") {
		t.Error(got)
	}
}

// A cluster of AKS is known by its server's name, too; the label is the document's to set
// to false, and another cluster's Node does not get it.
func TestUnmanaged(t *testing.T) {
	const is, label = "kubernetes.azure.com/managed:false", "kubernetes.azure.com/managed"
	for server, want := range map[string]bool{
		"https://one-12345.hcp.westeurope.azmk8s.io:443":       true,
		"https://one-12345.hcp.usgovvirginia.CX.AKS.azmk8s.US": true,
		"https://one-12345.hcp.chinaeast2.cx.prod.azmk8s.cn":   true,
		"https://one.azmk8s.io.example":                        false,
		"https://10.0.0.1:6443":                                false,
	} {
		for _, labels := range []map[string]any{{}, {label: "false"}} {
			doc, err := Decode(edited(t, map[string]any{"cluster.server": server, "node.labels": labels, "node.name": "one"}))
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(translated(t, doc, machineOf(t)).Lookup("node:one"))
			if strings.Contains(got, is) != (want || len(labels) > 0) {
				t.Errorf("%s with %v: %s", server, labels, got)
			}
		}
	}
}

// What the facts lack or can't be used refuses the document, by its field.
func TestRefusedByFacts(t *testing.T) {
	for _, c := range []struct{ document, file, content, want string }{
		{"minimal.yaml", "/etc/berth/ca.pem", "", "cluster.caFile"},
		{"minimal.yaml", "/etc/berth/ca.pem", "no PEM", "cluster.caFile"},
		{"full.yaml", "/etc/berth/site.pem", certificateOfNobody, "trust.caFiles[0]"},
		{"bridge.json", "/etc/berth/node.pem", "", "identity.clientCertificate.certFile"},
		{"bridge.json", "/etc/berth/node.pem", string(testdata(t, "ca.pem")), "identity.clientCertificate.certFile"},
	} {
		f := machineOf(t)
		if f.Files[c.file] = []byte(c.content); c.content == "" {
			delete(f.Files, c.file)
		}
		_, err := Translate(decoded(t, c.document), f)
		if e, ok := errors.AsType[*DocumentError](err); !ok || e.List()[0].Field != c.want {
			t.Errorf("%s with %s %.10q: %v", c.document, c.file, c.content, err)
		}
	}
}

// FuzzDecode: what is taken can be translated, and nothing panics.
func FuzzDecode(f *testing.F) {
	for _, name := range documents {
		f.Add(testdata(f, name))
	}
	for _, c := range badInputs {
		f.Add(edited(f, c.edits))
	}
	facts := machineOf(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := Decode(text)
		if err != nil {
			return
		}
		if _, err := Translate(doc, facts); err != nil {
			if _, ok := errors.AsType[*DocumentError](err); !ok {
				t.Error(err)
			}
		}
	})
}

// Registries as images carry them, and as containerd looks for their mirrors.
func TestRegistryNames(t *testing.T) {
	for name, want := range map[string]bool{
		"registry.k8s.io": true, "localhost:5000": true, "10.0.0.1:5000": true, "[fd00::1]:5000": true, "[fd00::1]": true,
		"fd00::1": false, "[fd00::1": false, "[10.0.0.1]": false, "[fd00::1%eth0]:5000": false, "[fd00::1]5000": false, "[fd00::1]:": false, "a:": false, ":5000": false,
	} {
		if got := isRegistry(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
