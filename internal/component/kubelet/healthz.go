package kubelet

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
)

// Healthz is the health endpoint of a kubelet with a configuration; "" if it has none.
func Healthz(config map[string]any) string {
	port := 10248
	if n, ok := config["healthzPort"].(float64); ok {
		port = int(n)
	}
	if port == 0 {
		return ""
	}
	address, _ := config["healthzBindAddress"].(string)
	return fmt.Sprintf("http://%s/healthz", net.JoinHostPort(cmp.Or(address, "127.0.0.1"), strconv.Itoa(port)))
}
