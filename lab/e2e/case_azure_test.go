package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-dev/berth/api/nodeconfig/v1alpha1"
	"github.com/berth-dev/berth/lab"
	"github.com/berth-dev/berth/lab/internal/serve"
)

// Identities of the lab's tenant; objectID is the user that the API server sees.
const (
	azureTenant  = "11111111-1111-1111-1111-111111111111"
	azureClient  = "22222222-2222-2222-2222-222222222222"
	machineID    = "33333333-3333-3333-3333-333333333333"
	applicationO = "44444444-4444-4444-4444-444444444444"
	application  = "55555555-5555-5555-5555-555555555555"
	aksServer    = "6dae42f8-4368-4678-94ff-3960e28e3630"
	aksCluster   = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/edge/providers/Microsoft.ContainerService/managedClusters/lab"
	tokenService = "/metadata/identity/oauth2/token"
	secretFile   = "/etc/berth/client-secret"
	// arcHeader is what the lab's agent of Azure Arc asks the metadata service with.
	arcHeader = "X-Arc"
)

// azure is a tenant whose tokens the lab's API server takes.
type azure struct {
	lab      *lab.Lab
	entra    *serve.Entra
	metadata *metadataService
	url, ca  string
}

// newAzure serves Microsoft Entra ID and the metadata service, lets both identities
// ask for certificates, and waits until the API server knows the tenant.
func newAzure(t *testing.T, l *lab.Lab) *azure {
	t.Helper()
	cert, err := serve.Stranger(l.Gateway().String())
	if err != nil {
		t.Fatal(err)
	}
	a := &azure{lab: l, metadata: newMetadata(t, l)}
	a.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]}))
	listen(t, l, func(at net.Listener) *serve.Server {
		a.url = "https://" + at.Addr().String()
		a.entra = serve.NewEntra(a.url, azureTenant)
		return serve.StartTLS(at, cert, a.entra)
	})
	a.entra.AddApplication(serve.Application{ClientID: application, ObjectID: applicationO, Secret: "lab secret+&"})
	a.metadata.metadata.AddIdentity(serve.Identity{ClientID: azureClient, ObjectID: machineID, ResourceID: "/identities/lab"})
	a.metadata.metadata.IssuedBy(a.entra)
	a.metadata.start(t)
	check(t, l.Trust(lab.Issuer{URL: a.entra.Issuer(), CA: a.ca, Audience: aksServer, Claim: "oid"}))
	t.Cleanup(func() { check(t, l.Trust()) })
	a.known(t)
	applyRBAC(t, l, "--object-id", machineID, "--object-id", applicationO)
	return a
}

// known waits until the API server says who shows a token.
func (a *azure) known(t *testing.T) {
	t.Helper()
	token, err := a.entra.Give(machineID, azureClient, aksServer, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(a.lab.RESTConfig())
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var last error
	err = wait.PollUntilContextCancel(within(t, 90*time.Second), 300*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var r *authenticationv1.SelfSubjectReview
		r, last = client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return last == nil && r.Status.UserInfo.Username == machineID, nil
	})
	if err != nil {
		t.Fatalf("the API server does not take the tenant's tokens: %v, %v", err, last)
	}
}

// byApply and byJoin are the two commands that make a machine a node.
func byApply(t *testing.T, n *lab.Node) {
	t.Helper()
	said, _ := applyDocument(t, n)
	t.Log(said)
}

func byJoin(t *testing.T, n *lab.Node) {
	t.Helper()
	if r, said := joinCommand(t, n); r.ExitCode != 0 || r.Milestone != "ready" || r.Node != n.Name {
		t.Fatalf("%+v\n%s", r, said)
	}
}

// again: a second join has nothing to do.
func again(t *testing.T, n *lab.Node) {
	t.Helper()
	if r, said := joinCommand(t, n); r.ExitCode != 0 || r.Changes != 0 || r.Milestone != "ready" {
		t.Errorf("second join: %+v\n%s", r, said)
	}
}

// join makes a machine a node with an identity, and proves by what right it is one.
func (a *azure) join(t *testing.T, name, object string, i v1alpha1.Identity, bring func(*testing.T, *lab.Node), before func(*lab.Node), files map[string]lab.File) *lab.Node {
	t.Helper()
	n := a.machine(t, name, i, before, files)
	start := time.Now()
	bring(t, n)
	if _, err := a.lab.WaitNodeReady(within(t, 90*time.Second), n.Name); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: ready %.2f s after the start", n.Name, time.Since(start).Seconds())
	a.askedAs(t, n, object)
	a.standsWell(t, n)
	return n
}

// standsWell: the Node is one that the cloud keeps, nothing is left to do, and no token
// stands in a file.
func (a *azure) standsWell(t *testing.T, n *lab.Node) {
	t.Helper()
	if got := nodeOf(t, a.lab, n).Labels["kubernetes.azure.com/managed"]; got != "false" {
		t.Errorf("the cloud deletes the Node: its label is %q", got)
	}
	planIsEmpty(t, a.lab, n)
	standsWithoutTokens(t, n)
}

func standsWithoutTokens(t *testing.T, n *lab.Node) {
	t.Helper()
	if r, err := n.Exec(within(t, time.Minute), "grep", "-rl", tokenBeginning, "/var/log", "/var/lib/berth", "/etc"); err != nil || len(r.Stdout) > 0 {
		t.Errorf("a token stands in %s (%v)", r.Stdout, err)
	}
}

// machine is one with a document that names an identity, and with nothing else of a node.
func (a *azure) machine(t *testing.T, name string, i v1alpha1.Identity, before func(*lab.Node), files map[string]lab.File) *lab.Node {
	t.Helper()
	all := tokenAndCA(t, a.lab)
	delete(all, tokenPath)
	for p, f := range files {
		all[p] = f
	}
	n := addNode(t, a.lab, lab.NodeConfig{Name: name, Files: all})
	if _, err := n.WaitBooted(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	kubeletWas(t, n)
	a.metadata.reachesNode(t, n)
	before(n)
	a.configure(t, n, i)
	return n
}

// configure gives a machine a document that names an identity, and forgets what was asked.
func (a *azure) configure(t *testing.T, n *lab.Node, i v1alpha1.Identity) {
	t.Helper()
	a.metadata.metadata.Clear()
	a.entra.Clear()
	text := ownDocument(t, a.lab, func(c *v1alpha1.NodeConfig) {
		c.Identity, c.Azure.Authority, c.Trust.CAs, c.Cluster.ResourceID = i, a.url, []string{a.ca}, aksCluster
		c.Networking.ClusterDomain = "cluster.local" // so that nobody is asked for it
	})
	if err := n.WriteFile(configPath, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// askedAs: the certificate of the Node was asked for by the identity, or by nobody.
func (a *azure) askedAs(t *testing.T, n *lab.Node, objects ...string) {
	t.Helper()
	var users []string
	for _, r := range requestsFor(t, a.lab, n) {
		if r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName {
			users = append(users, r.Spec.Username)
		}
	}
	if !slices.Equal(users, objects) {
		t.Errorf("the certificate was asked for by %q, want %q", users, objects)
	}
}

// tokens is how often the metadata service gave a token for the API server, and
// whether anything else was asked of it.
func (a *azure) tokens(t *testing.T) (n int, last serve.Request) {
	t.Helper()
	for _, r := range a.metadata.metadata.Requests() {
		if r.Path != tokenService {
			continue
		}
		n, last = n+1, r
		if !strings.Contains(r.Query, "resource="+aksServer) || r.Header.Get("Metadata") != "true" {
			t.Errorf("asked with %s %v", r.Query, r.Header)
		}
	}
	return n, last
}

// TestCaseAzure joins machines with tokens of Microsoft Entra ID, which the API server
// verifies as it does those of a real tenant.
func TestCaseAzure(t *testing.T) {
	parallelLong(t)
	l := sharedLab(t)
	a := newAzure(t, l)
	t.Run("managed identity", a.managedIdentity)
	t.Run("service principal", a.servicePrincipal)
	d := a.direct(t) // its tokens end meanwhile
	t.Run("arc", a.arc)
	t.Run("direct", d.goesOn)
}

func (a *azure) managedIdentity(t *testing.T) {
	n := a.join(t, "azure-mi", machineID, v1alpha1.Identity{ManagedIdentity: &v1alpha1.ManagedIdentity{ClientID: azureClient, TenantID: azureTenant}},
		byJoin, func(n *lab.Node) { a.machinesRights(t, n) }, nil)
	if count, r := a.tokens(t); count != 1 || !strings.Contains(r.Query, "client_id="+azureClient) || !strings.Contains(r.Query, "api-version=2018-02-01") {
		t.Errorf("%d requests for a token, the last %s", count, r.Query)
	}
	again(t, n)
	a.rejoinsByItself(t, n)
	a.token(t, n)
	a.published(t, n)
}

// published: the machine leaves, and joins under the published name with the published
// configuration.
func (a *azure) published(t *testing.T, n *lab.Node) {
	t.Helper()
	if said, code := leaves(t, n, "--force"); code != 4 { // the Node stays
		t.Fatalf("leave: exit code %d\n%s", code, said)
	}
	check(t, a.lab.Client().CoreV1().Nodes().Delete(within(t, 10*time.Second), n.Name, metav1.DeleteOptions{}))
	run(t, n, "ln", "-s", berthPath, flexPath)
	for path, f := range flexFiles(t, a.lab, flexManaged) {
		run(t, n, "mkdir", "-p", filepath.Dir(path))
		check(t, n.WriteFile(path, f.Content, 0o600))
	}
	earlier := len(requestsFor(t, a.lab, n))
	a.metadata.metadata.Clear()
	before := look(t, n, "/var/lib/containerd")
	bootstraps(t, a.lab, n)
	if count, r := a.tokens(t); count == 0 || !strings.Contains(r.Query, "client_id="+azureClient) {
		t.Errorf("%d requests for a token, the last %s", count, r.Query)
	}
	if all := requestsFor(t, a.lab, n); len(all) == earlier {
		t.Error("the Node has no certificate of its own")
	}
	standsWithoutTokens(t, n)
	unbootstraps(t, n, before)
}

// rejoinsByItself: a kubelet without its certificate comes by the next one with the
// bootstrap kubeconfig, whose exec plugin is berth.
func (a *azure) rejoinsByItself(t *testing.T, n *lab.Node) {
	run(t, n, "sh", "-c", "systemctl stop kubelet && rm -r /var/lib/kubelet/pki/kubelet-client* /var/lib/kubelet/kubeconfig && systemctl start kubelet")
	if err := n.Run(within(t, 30*time.Second), "sh", "-c", "until grep -qs CERTIFICATE /var/lib/kubelet/pki/kubelet-client-current.pem; do sleep 0.2; done"); err != nil {
		t.Fatalf("%v\n%s", err, run(t, n, "sh", "-c", "ls -l /var/lib/kubelet/pki; journalctl -u kubelet --no-pager | grep -v mirror | grep -iE 'certificate|bootstrap|exec|token|csr|berth' | tail -20"))
	}
	if count, _ := a.tokens(t); count != 2 {
		t.Errorf("%d requests for a token", count)
	}
}

// token: what berth token prints, how long that takes, and what it refuses.
func (a *azure) token(t *testing.T, n *lab.Node) {
	a.metadata.metadata.Clear()
	run(t, n, "rm", "-rf", "/run/berth/tokens")
	measured := func(times int) string {
		return strings.TrimSpace(run(t, n, "sh", "-c", fmt.Sprintf(
			`for i in $(seq %d); do a=$(date +%%s%%N); berth token > /dev/null || exit 1; b=$(date +%%s%%N); echo $(( (b-a)/100000 )); done | sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]/10}'`, times)))
	}
	t.Logf("berth token: first %s ms", measured(1))
	t.Logf("berth token: kept, median of 15 %s ms", measured(15))
	if count, _ := a.tokens(t); count != 1 {
		t.Errorf("%d requests for 16 tokens", count)
	}
	out := run(t, n, "berth", "token")
	if !strings.Contains(out, `"apiVersion":"client.authentication.k8s.io/v1"`) || !strings.Contains(out, tokenBeginning) || !strings.Contains(out, "expirationTimestamp") {
		t.Error(out)
	}
	if modes := run(t, n, "stat", "-c", "%a %U", "/run/berth/tokens"); strings.TrimSpace(modes) != "700 root" {
		t.Error(modes)
	}
	r, err := n.Exec(within(t, 10*time.Second), "berth", "token", "--server-id", "https://management.azure.com")
	if err != nil || r.Code != 1 || len(r.Stdout) > 0 {
		t.Errorf("%v, %d %s%s", err, r.Code, r.Stdout, r.Stderr)
	}
}

func (a *azure) servicePrincipal(t *testing.T) {
	n := a.join(t, "azure-sp", applicationO, v1alpha1.Identity{ServicePrincipal: &v1alpha1.ServicePrincipal{TenantID: azureTenant, ClientID: application, ClientSecretFile: secretFile}},
		withSecret("lab secret+&\n"), func(*lab.Node) {}, nil)
	count, _ := a.entra.Count("/" + azureTenant + "/oauth2/v2.0/token")
	if asked, _ := a.tokens(t); count != 1 || asked != 0 {
		t.Errorf("%d tokens of Entra, %d of the metadata service", count, asked)
	}
	run(t, n, "rm", secretFile) // it is read when it is needed
	again(t, n)
	planIsEmpty(t, a.lab, n)
	r, err := n.Exec(within(t, 10*time.Second), "berth", "token")
	if err != nil || r.Code != 1 || !strings.Contains(string(r.Stderr), secretFile) {
		t.Errorf("%v, %d %s", err, r.Code, r.Stderr)
	}
}

// withSecret: a join is refused before anything changes while the secret is not here.
func withSecret(secret string) func(*testing.T, *lab.Node) {
	return func(t *testing.T, n *lab.Node) {
		t.Helper()
		refusedWithout(t, n)
		check(t, n.WriteFile(secretFile, []byte(secret), 0o600))
		byJoin(t, n)
	}
}

func refusedWithout(t *testing.T, n *lab.Node) {
	t.Helper()
	const result = "/var/lib/berth" // what came of it is told
	before := lookBeside(t, n, result)
	if r, said := joinCommand(t, n); r.ExitCode != 1 || !strings.Contains(r.Failure.Cause, secretFile) || !strings.Contains(r.Failure.Hint, "identity.servicePrincipal") {
		t.Errorf("without its secret: %+v\n%s", r, said)
	}
	if diff := cmp.Diff(before, lookBeside(t, n, result)); diff != "" {
		t.Errorf("a join that was refused changed the machine: %s", diff)
	}
}

// directNode is a node that has nothing but its identity's tokens, and its units as they ran
// when its first token had yet to end.
type directNode struct {
	*azure
	node *lab.Node
	was  string
	end  time.Time
}

// direct: kubelet shows the identity's tokens, and asks for no certificate.
func (a *azure) direct(t *testing.T) *directNode {
	t.Helper()
	const object, client = "66666666-6666-6666-6666-666666666666", "77777777-7777-7777-7777-777777777777"
	a.entra.AddApplication(serve.Application{ClientID: client, ObjectID: object, Secret: "another", Lifetime: shortLife})
	applyRBAC(t, a.lab, "--direct", "--object-id", object)
	i := v1alpha1.Identity{Direct: true, ServicePrincipal: &v1alpha1.ServicePrincipal{TenantID: azureTenant, ClientID: client, ClientSecretFile: secretFile}}
	n := a.machine(t, "azure-direct", i, func(*lab.Node) {}, nil)
	withSecret("another\n")(t, n)
	a.askedAs(t, n)
	a.standsWell(t, n)
	again(t, n)
	return &directNode{a, n, invocations(t, n), time.Now().Add(shortLife + 10*time.Second)}
}

// goesOn: the node goes on when its first tokens have ended. berth, too, acts with its tokens:
// it leaves as any node does.
func (d *directNode) goesOn(t *testing.T) {
	a, n := d.azure, d.node
	d.outlivesTokens(t)
	if out := run(t, n, "sh", "-c", "ls /var/lib/kubelet/pki; /var/lib/kubelet/token.sh"); strings.Contains(out, "kubelet-client") || !strings.Contains(out, "ExecCredential") {
		t.Errorf("kubelet has a certificate, or no token: %s", out)
	}
	r, err := n.Exec(within(t, time.Minute), berthPath, "doctor") // the lab's container is ill in ways of its own
	if check(t, err); !strings.Contains(string(r.Stdout), "but a token of the identity servicePrincipal") || strings.Contains(string(r.Stdout), "none to be had") {
		t.Errorf("%s", r.Stdout)
	}
	admin, err := os.ReadFile(a.lab.Kubeconfig())
	check(t, err)
	check(t, n.WriteFile(adminPath, admin, 0o600))
	if said, code := leaves(t, n, "--force", "--kubeconfig", adminPath); code != 0 || hasNode(t, a.lab, n.Name) {
		t.Errorf("leave: exit code %d\n%s", code, said)
	}
	a.byLogin(t, n)
}

// shortLife is that of the tokens of a kubelet that has nothing else.
const shortLife = time.Minute

// outlivesTokens: kubelet goes on with new tokens when its own have ended, without a start.
func (d *directNode) outlivesTokens(t *testing.T) {
	t.Helper()
	eventually(t, "a heartbeat after the end of its token", 90*time.Second, func() bool {
		l, err := d.lab.Client().CoordinationV1().Leases("kube-node-lease").Get(t.Context(), d.node.Name, metav1.GetOptions{})
		return err == nil && l.Spec.RenewTime != nil && l.Spec.RenewTime.After(d.end)
	})
	if got := restarted(d.was, invocations(t, d.node)); len(got) > 0 {
		t.Errorf("started anew: %v", got)
	}
}

// byLogin: the machine joins again with the login of the Azure CLI, which is needed for
// the node's certificate and never again.
func (a *azure) byLogin(t *testing.T, n *lab.Node) {
	t.Helper()
	program, err := os.ReadFile("testdata/az.py")
	check(t, err)
	check(t, n.WriteFile("/usr/bin/az", program, 0o755))
	check(t, n.WriteFile("/etc/az-authority", []byte(a.url), 0o644))
	a.configure(t, n, v1alpha1.Identity{AzureCLI: &v1alpha1.AzureCLI{TenantID: azureTenant}})
	if r, said := joinCommand(t, n); r.ExitCode != 1 || !strings.Contains(r.Failure.Cause, "exit code 1: ERROR: Please run 'az login'") || !strings.Contains(r.Failure.Hint, "az login") {
		t.Errorf("nobody has logged in: %+v\n%s", r, said)
	}
	run(t, n, "az", "login", "--service-principal", "--username", application, "--password", "lab secret+&", "--tenant", azureTenant)
	a.entra.Clear()
	byJoin(t, n)
	a.askedAs(t, n, applicationO)
	count, _ := a.entra.Count("/" + azureTenant + "/oauth2/v2.0/token")
	if asked, _ := a.tokens(t); count != 1 || asked != 0 {
		t.Errorf("%d tokens of the login, %d of the metadata service", count, asked)
	}
	a.standsWell(t, n)
	run(t, n, "rm", "-r", "/root/.azure")
	again(t, n)
	if r, err := n.Exec(within(t, 10*time.Second), "berth", "token"); err != nil || r.Code != 1 || len(r.Stdout) > 0 {
		t.Errorf("%v, exit code %d: %s%s", err, r.Code, r.Stdout, r.Stderr)
	}
}

func (a *azure) arc(t *testing.T) {
	agent, err := os.ReadFile("testdata/himds.py")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("testdata/azcmagent.py")
	if err != nil {
		t.Fatal(err)
	}
	n := a.join(t, "azure-arc", machineID, v1alpha1.Identity{Arc: &v1alpha1.Arc{TenantID: azureTenant}}, byApply, func(n *lab.Node) {
		run(t, n, "useradd", "--system", "himds")
		run(t, n, "systemd-run", "--unit=himdsd", "python3", "/opt/himds.py")
		run(t, n, "sh", "-c", "until grep -q :9D96 /proc/net/tcp; do sleep 0.1; done")
	}, map[string]lab.File{"/opt/himds.py": {Content: agent}, "/usr/bin/azcmagent": {Content: program, Mode: 0o755}})
	count, r := a.tokens(t)
	if count != 1 || r.Header.Get(arcHeader) == "" {
		t.Errorf("%d requests for a token, the last with %v", count, r.Header)
	}
	a.registers(t, n)
}

// registers: the machine leaves, and joins again as one that Azure does not know, and
// without the agent: that is installed and registers it, its identity is given the role,
// and Azure says how the cluster is reached. Leaving takes all of it back.
func (a *azure) registers(t *testing.T, n *lab.Node) {
	if said, code := leaves(t, n, "--force"); code != 4 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	check(t, a.lab.Client().CoreV1().Nodes().Delete(within(t, 10*time.Second), n.Name, metav1.DeleteOptions{}))
	// The agent was there before berth, and is there yet.
	run(t, n, "sh", "-ec", "test -x /usr/bin/azcmagent; systemctl stop himdsd; userdel himds; rm -r /usr/bin/azcmagent /opt/himds.py /var/opt/azcmagent")
	arm := a.newARM(t)
	arm.Late = 2
	cert, err := serve.Stranger(a.lab.Gateway().String())
	if err != nil {
		t.Fatal(err)
	}
	deb := agentPackage(t)
	var packages string
	listen(t, a.lab, func(at net.Listener) *serve.Server {
		packages = "https://" + at.Addr().String()
		return serve.StartTLS(at, cert, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "azcmagent.deb", time.Time{}, bytes.NewReader(deb))
		}))
	})
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[1]}))
	text := ownDocument(t, a.lab, func(c *v1alpha1.NodeConfig) {
		c.Cluster = v1alpha1.Cluster{ResourceID: aksCluster, Location: "westeurope"}
		c.Identity = v1alpha1.Identity{Arc: &v1alpha1.Arc{TenantID: azureTenant, Agent: &v1alpha1.ArcAgent{
			URLs: []string{packages + "/azcmagent_1.0_all.deb"}, SHA256: fmt.Sprintf("%x", sha256.Sum256(deb))}, Registration: &v1alpha1.ArcRegistration{AssignRole: true,
			ServicePrincipal: &v1alpha1.ServicePrincipal{TenantID: azureTenant, ClientID: application, ClientSecretFile: secretFile}}}}
		c.Azure.Authority, c.Azure.ResourceManager, c.Trust.CAs = a.url, arm.url, []string{a.ca, arm.ca, ca}
		c.Networking.ClusterDomain = "cluster.local"
	})
	for path, content := range map[string][]byte{configPath: text, secretFile: []byte("lab secret+&\n"), "/etc/azcmagent-arm": []byte("https://" + a.lab.Gateway().String() + ":9")} {
		if err := n.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	operatorsRights(t, n, arm, text)
	agentsWay(t, n, arm)
	r, said := joinCommand(t, n)
	if r.ExitCode != 0 || r.Milestone != "ready" || len(arm.Objects()) != 2 {
		t.Fatalf("%+v, %q\n%s", r, arm.Objects(), said)
	}
	if out := run(t, n, "sh", "-ec", "dpkg-query --show azcmagent; stat -c %U /var/opt/azcmagent; test ! -e /var/lib/berth/azcmagent.package"); !strings.Contains(out, "1.0") {
		t.Error(out)
	}
	machine := "/subscriptions/" + azureTenant + "/resourcegroups/edge/providers/microsoft.hybridcompute/machines/" + n.Name
	if objects := arm.Objects(); objects[1] != machine || len(arm.Tags(machine)["berth-registration"]) != 36 {
		t.Errorf("%q, %v", objects, arm.Tags(machine))
	}
	asked := len(arm.Requests())
	run(t, n, "mv", secretFile, "/root/secret")
	if r, said := joinCommand(t, n); r.ExitCode != 0 || r.Changes != 0 || len(arm.Requests()) != asked {
		t.Errorf("again: %+v, %d requests after %d\n%s", r, len(arm.Requests()), asked, said)
	}
	run(t, n, "mv", "/root/secret", secretFile)
	arm.Busy, arm.Slow = 1, true
	said, code := leaves(t, n, "--force")
	if len(arm.Objects()) != 0 || code != 4 || strings.Contains(said, "still in Azure") { // the Node itself stays
		t.Errorf("exit code %d, %q\n%s", code, arm.Objects(), said)
	}
	var log []string
	for _, q := range arm.Requests() {
		log = append(log, fmt.Sprintf("%s %s?%s %d", q.Method, q.Path, q.Query, q.Status))
	}
	asks := strings.Join(log, "\n")
	t.Logf("Azure was asked:\n%s", asks)
	const box, roles, users = ".*/Microsoft.HybridCompute/machines/[^/]+\\?api-version=2022-03-10 ", ".*/Microsoft.Authorization/roleAssignments/[0-9a-f-]{36}\\?api-version=2022-04-01 ", ".*/listClusterUserCredential\\?api-version=2024-02-01 "
	order := "^GET " + box + "404\nGET " + box + "404\nPUT " + box + "201\nGET " + box + "200\nGET " + roles + "404\nPUT " + roles + "201\n(POST " + users + "403\n){2}(POST " + users + "200\n)+" +
		"DELETE " + roles + "429\nDELETE " + roles + "204\nGET " + box + "200\nDELETE " + box + "202\nGET .*/operationstatus/.* 202\nGET .*/operationstatus/.* 204$"
	if !regexp.MustCompile(order).MatchString(asks) {
		t.Errorf("another order than %s", order)
	}
	if r, err := n.Exec(within(t, 10*time.Second), "sh", "-c", "ls -d /usr/bin/azcmagent /opt/himds.py /var/opt/azcmagent /var/lib/berth; id himds; systemctl is-active himdsd; dpkg-query --show azcmagent"); err != nil || strings.TrimSpace(string(r.Stdout)) != "inactive" {
		t.Errorf("the agent stays: %s%s (%v)", r.Stdout, r.Stderr, err)
	}
	if r, err := n.Exec(within(t, time.Minute), "grep", "-rl", tokenBeginning, "/var/log", "/var/lib", "/etc", "/run/berth"); err != nil || len(r.Stdout) > 0 {
		t.Errorf("a token stands in %s (%v)", r.Stdout, err)
	}
}

// agentsWay: an agent that does not reach Azure, though berth does, says so by its exit
// code. The join ends with what to check, and has registered nothing.
func agentsWay(t *testing.T, n *lab.Node, arm *arm) {
	t.Helper()
	r, said := joinCommand(t, n)
	if r.ExitCode != 1 || !strings.Contains(r.Failure.Cause, "exit code 62: level=fatal msg=\"AZCM0062") || !strings.Contains(r.Failure.Hint, "azcmagent check") || !strings.Contains(r.Failure.Hint, "azcmagent config set proxy.url") {
		t.Errorf("%+v\n%s", r, said)
	}
	if !strings.Contains(said, "installed the agent of Azure Arc") || len(arm.Objects()) > 0 {
		t.Errorf("%q\n%s", arm.Objects(), said)
	}
	check(t, n.WriteFile("/etc/azcmagent-arm", []byte(arm.url), 0o600))
	arm.Clear()
}

// userKubeconfig is what Azure says to users of the lab's cluster.
func (a *azure) userKubeconfig(t *testing.T) []byte {
	t.Helper()
	ca, err := a.lab.CA()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"+
		"clusters: [{name: k, cluster: {server: \"https://%s:443\", certificate-authority-data: %s}}]\nusers: [{name: u, user: {}}]\n", a.lab.Gateway(), base64.StdEncoding.EncodeToString(ca))
}
