package rbac

// The objects as the API has them, as far as they are used. The API's own types
// would register hundreds of others at each start of the program.

type object struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`

	Rules    []rule    `json:"rules,omitempty"`
	RoleRef  *roleRef  `json:"roleRef,omitempty"`
	Subjects []subject `json:"subjects,omitempty"`
	Spec     any       `json:"spec,omitempty"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

type rule struct {
	APIGroups     []string `json:"apiGroups"`
	Resources     []string `json:"resources"`
	ResourceNames []string `json:"resourceNames,omitempty"`
	Verbs         []string `json:"verbs"`
}

type roleRef struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

type subject struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

// policySpec is that of a ValidatingAdmissionPolicy.
type policySpec struct {
	FailurePolicy    string           `json:"failurePolicy"`
	MatchConstraints matchConstraints `json:"matchConstraints"`
	MatchConditions  []named          `json:"matchConditions"`
	Variables        []named          `json:"variables"`
	Validations      []constraint     `json:"validations"`
}

type matchConstraints struct {
	ResourceRules []resourceRule `json:"resourceRules"`
}

type resourceRule struct {
	APIGroups   []string `json:"apiGroups"`
	APIVersions []string `json:"apiVersions"`
	Operations  []string `json:"operations"`
	Resources   []string `json:"resources"`
}

// named is an expression with a name.
type named struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type constraint struct {
	Expression string `json:"expression"`
	Message    string `json:"message"`
	Reason     string `json:"reason"`
}

// bindingSpec is that of a ValidatingAdmissionPolicyBinding.
type bindingSpec struct {
	PolicyName        string   `json:"policyName"`
	ValidationActions []string `json:"validationActions"`
}

const (
	rbacGroup      = "rbac.authorization.k8s.io"
	rbacVersion    = rbacGroup + "/v1"
	admissionGroup = "admissionregistration.k8s.io/v1"
)

func groupSubject(name string) []subject { return []subject{{rbacGroup, "Group", name}} }

func clusterRole(name string, rules ...rule) object {
	return object{APIVersion: rbacVersion, Kind: "ClusterRole", Metadata: metadata{Name: name}, Rules: rules}
}

func clusterBinding(name, role, group string) object {
	return object{APIVersion: rbacVersion, Kind: "ClusterRoleBinding", Metadata: metadata{Name: name},
		RoleRef: &roleRef{rbacGroup, "ClusterRole", role}, Subjects: groupSubject(group)}
}

// role is a Role and its binding to a group.
func role(namespace, name, group string, rules ...rule) []object {
	m := metadata{Name: name, Namespace: namespace}
	return []object{
		{APIVersion: rbacVersion, Kind: "Role", Metadata: m, Rules: rules},
		{APIVersion: rbacVersion, Kind: "RoleBinding", Metadata: m, RoleRef: &roleRef{rbacGroup, "Role", name}, Subjects: groupSubject(group)},
	}
}

// policy is a ValidatingAdmissionPolicy and its binding.
func policy(name string, spec policySpec) []object {
	return []object{
		{APIVersion: admissionGroup, Kind: "ValidatingAdmissionPolicy", Metadata: metadata{Name: name}, Spec: spec},
		{APIVersion: admissionGroup, Kind: "ValidatingAdmissionPolicyBinding", Metadata: metadata{Name: name},
			Spec: bindingSpec{PolicyName: name, ValidationActions: []string{"Deny"}}},
	}
}
