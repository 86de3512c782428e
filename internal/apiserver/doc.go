// Package apiserver talks to a cluster's API server as a node does: it verifies
// that the server can be reached and trusted (Prober), carries the few calls
// that a node makes before and beside its kubelet (Client), follows single
// objects (Client.FollowNode and its like, Latest), and waits for the node's own
// milestones: kubelet healthy, Node registered, Node Ready (NodeWatcher).
// What it reports names the layer that failed: name, connection, trust, answer.
package apiserver
