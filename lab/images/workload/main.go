// Command workload is the lab's pod: it prints a line, answers HTTP on port
// 8080 and sleeps. Called with arguments it is a client, for kubectl exec:
// "echo WORD…" prints the words, "get URL" prints what the URL answers, "resolve NAME"
// the addresses of a name.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 0:
		return serve()
	case args[0] == "echo":
		fmt.Println(strings.Join(args[1:], " "))
		return nil
	case args[0] == "get" && len(args) == 2:
		return get(args[1])
	case args[0] == "resolve" && len(args) == 2:
		return resolve(args[1])
	}
	return fmt.Errorf("unknown command %q", args)
}

func serve() error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Println("workload runs in", name)
	return http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello from", name)
	}))
}

func get(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s", url, resp.Status)
	}
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}

func resolve(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(addresses, " "))
	return nil
}
