package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// approved is the group of tokens whose requests are approved at once.
const approved = "system:bootstrappers:kubeadm:default-node-token"

// bindings let nodes that hold a bootstrap token ask for a client certificate
// and get it without an operator, where the token is of the group, and renew it.
var bindings = map[string]struct{ group, role string }{
	"lab:bootstrap": {"system:bootstrappers", "system:node-bootstrapper"},
	"lab:approve":   {approved, "system:certificates.k8s.io:certificatesigningrequests:nodeclient"},
	"lab:renew":     {"system:nodes", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"},
}

// Prepare makes the bindings.
func Prepare(ctx context.Context, c kubernetes.Interface) error {
	for name, b := range bindings {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects:   []rbacv1.Subject{{Kind: "Group", Name: b.group, APIGroup: rbacv1.GroupName}},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: b.role, APIGroup: rbacv1.GroupName},
		}
		_, err := c.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("bind %s: %w", name, err)
		}
	}
	return nil
}

// AddToken makes a bootstrap token "id.secret". A zero expiry means none; one
// in the past makes a token that the API server refuses until the token
// cleaner removes it. What somebody asks for by a token that is held waits for
// a person's approval.
func AddToken(ctx context.Context, c kubernetes.Interface, id, secret string, expiry time.Time, held bool) error {
	data := map[string]string{
		"token-id": id, "token-secret": secret,
		"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true",
	}
	if !held {
		data["auth-extra-groups"] = approved
	}
	if !expiry.IsZero() {
		data["expiration"] = expiry.UTC().Format(time.RFC3339)
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Namespace: metav1.NamespaceSystem},
		Type:       corev1.SecretTypeBootstrapToken, StringData: data,
	}
	_, err := c.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, s, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create bootstrap token: %w", err)
	}
	return nil
}

// DeleteToken removes a bootstrap token.
func DeleteToken(ctx context.Context, c kubernetes.Interface, id string) error {
	err := c.CoreV1().Secrets(metav1.NamespaceSystem).Delete(ctx, "bootstrap-token-"+id, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete bootstrap token: %w", err)
	}
	return nil
}

var errNotReady = errors.New("the node is not Ready")

// AwaitNode watches a node until ok accepts it.
func AwaitNode(ctx context.Context, c kubernetes.Interface, name string, ok func(*corev1.Node) bool) (*corev1.Node, error) {
	opts := metav1.ListOptions{FieldSelector: "metadata.name=" + name}
	for {
		w, err := c.CoreV1().Nodes().Watch(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("watch node %s: %w", name, err)
		}
		for e := range w.ResultChan() {
			node, is := e.Object.(*corev1.Node)
			if is && e.Type != "DELETED" && ok(node) {
				w.Stop()
				return node, nil
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("wait for node %s: %w", name, errors.Join(ctx.Err(), errNotReady))
		}
	}
}

// Ready reports whether a node's Ready condition is true.
func Ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
