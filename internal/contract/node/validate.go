package node

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
)

// validation finds what a reader of the document would refuse. The reader is named
// in the comment of each rule, or in its message.
type validation struct {
	config *v1alpha1.NodeConfig
	errs   field.ErrorList
}

var (
	clusterPath    = field.NewPath("cluster")
	identityPath   = field.NewPath("identity")
	componentsPath = field.NewPath("components")
	nodePath       = field.NewPath("node")
	networkPath    = field.NewPath("networking")
	artifactsPath  = field.NewPath("artifacts")
	proxyPath      = field.NewPath("proxy")
	trustPath      = field.NewPath("trust")
	azurePath      = field.NewPath("azure")
)

func (v *validation) document() {
	v.supported(field.NewPath("apiVersion"), v.config.APIVersion, v1alpha1.APIVersion)
	v.supported(field.NewPath("kind"), v.config.Kind, v1alpha1.Kind)
	v.cluster(&v.config.Cluster)
	v.identity(&v.config.Identity)
	v.components(&v.config.Components)
	v.node(&v.config.Node)
	v.networking(&v.config.Networking)
	v.artifacts(&v.config.Artifacts)
	v.proxy(&v.config.Proxy)
	v.trust(&v.config.Trust)
	v.azureServices(&v.config.Azure)
}

func (v *validation) refuse(at *field.Path, format string, args ...any) {
	v.errs = append(v.errs, invalid(at, fmt.Sprintf(format, args...)))
}

// expect refuses a value by what a check says of it.
func (v *validation) expect(at *field.Path, value, want string) {
	if want != "" {
		v.errs = append(v.errs, field.Invalid(at, value, want))
	}
}

func (v *validation) supported(at *field.Path, value string, known ...string) {
	switch {
	case value == "":
		v.errs = append(v.errs, field.Required(at, ""))
	case !slices.Contains(known, value):
		v.errs = append(v.errs, field.NotSupported(at, value, known))
	}
}

// required says whether there is a value.
func (v *validation) required(at *field.Path, value string) bool {
	if value == "" {
		v.errs = append(v.errs, field.Required(at, ""))
	}
	return value != ""
}

// choice is one of several members of which a document has exactly one.
type choice struct {
	name  string
	given bool
}

// exactlyOne refuses none and more of several members.
func (v *validation) exactlyOne(at *field.Path, of ...choice) {
	var names, given []string
	for _, c := range of {
		names = append(names, c.name)
		if c.given {
			given = append(given, c.name)
		}
	}
	switch {
	case len(given) == 0:
		v.errs = append(v.errs, field.Required(at, "one of "+strings.Join(names, ", ")))
	case len(given) > 1:
		v.refuse(at, "only one of %s may be there", strings.Join(given, ", "))
	}
}

// inline refuses a secret in the text where nobody asked for that.
func (v *validation) inline(at *field.Path, secret v1alpha1.Secret, allowed bool, instead string) {
	if secret != "" && !allowed {
		v.errs = append(v.errs, field.Forbidden(at, "a secret stands in the document: name it by "+instead+", or say allowInline: true"))
	}
}
