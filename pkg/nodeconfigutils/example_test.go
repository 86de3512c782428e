package nodeconfigutils_test

import (
	"encoding/base64"
	"fmt"
	"log"
	"strings"

	aksnodeconfigv1 "github.com/berth-dev/berth/api/aksnodeconfig/v1"
	"github.com/berth-dev/berth/pkg/nodeconfigutils"
)

// image is a configuration for preparing an image: it joins no cluster and therefore needs little.
func image() *aksnodeconfigv1.Configuration {
	return &aksnodeconfigv1.Configuration{
		Version:           "v1",
		KubernetesVersion: "1.36.3",
		PreProvisionOnly:  true,
	}
}

// A client creates a machine with both values.
func ExampleGetNodeBootstrapping() {
	node, err := nodeconfigutils.GetNodeBootstrapping(image())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("customData:", len(node.CustomData) > 0)
	fmt.Println("commandToExecute:", node.CSE)
	// Output:
	// customData: true
	// commandToExecute: /opt/azure/containers/aks-node-controller provision-wait
}

func ExampleCustomDataFlatcar() {
	data, err := nodeconfigutils.CustomDataFlatcar(image())
	if err != nil {
		log.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("starts the service:", strings.Contains(string(text), nodeconfigutils.Unit))
	// Output: starts the service: true
}

func ExampleMarshal() {
	text, err := nodeconfigutils.Marshal(image())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", text)
	// Output:
	// {
	//   "version": "v1",
	//   "kubernetes_version": "1.36.3",
	//   "pre_provision_only": true
	// }
}

func ExampleValidate() {
	for _, e := range nodeconfigutils.Validate(&aksnodeconfigv1.Configuration{
		Version:           "v1",
		KubernetesVersion: "1.36",
		PreProvisionOnly:  true,
		KubeBinaryConfig:  &aksnodeconfigv1.KubeBinaryConfig{CustomKubeBinaryUrl: "ftp://files.example/k.tar.gz"},
	}) {
		fmt.Println(e.Field)
	}
	// Output:
	// kube_binary_config.custom_kube_binary_url
	// kubernetes_version
}

func ExampleParseCSEStatus() {
	const message = `Enable failed: failed to execute command: command terminated with exit status=51
[stdout]
{"ExitCode":"51","Output":"","Error":"connect to cluster.example:443: connection refused"}

[stderr]
`
	status, err := nodeconfigutils.ParseCSEStatus(message)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.ExitCode, status.Error)
	// Output: 51 connect to cluster.example:443: connection refused
}
