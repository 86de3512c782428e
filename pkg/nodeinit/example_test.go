package nodeinit_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/berth-dev/berth/pkg/nodeinit"
)

// A cluster manager renders user data once for a pool; its machine controller fills in token and name.
func ExampleCloudConfig() {
	ca, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		log.Fatal(err)
	}
	configuration, err := os.ReadFile("testdata/configuration.yaml")
	if err != nil {
		log.Fatal(err)
	}
	userData, err := nodeinit.CloudConfig(nodeinit.Data{
		ClusterCA:      ca,
		BootstrapToken: nodeinit.BootstrapTokenPlaceholder,
		MachineName:    nodeinit.MachineNamePlaceholder,
		Version:        "v1.2.3",
		Configuration:  configuration,
		Binary:         nodeinit.Binary{Path: "/opt/bin/berth"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(userData, "<<BOOTSTRAP_TOKEN>>"), len(userData) < 4096)
	// Output: true true
}

// All errors come in one answer, each with the path of its field.
func ExampleInvalidError() {
	_, err := nodeinit.Ignition(nodeinit.Data{Binary: nodeinit.Binary{URL: "https://files.example.com/berth"}})
	if invalid, ok := errors.AsType[*nodeinit.InvalidError](err); ok {
		for _, e := range invalid.Errors {
			fmt.Println(e.Field)
		}
	}
	// Output:
	// clusterCA
	// bootstrapToken
	// machineName
	// version
	// configuration
	// binary.sha256
}
