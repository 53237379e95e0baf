package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// serverState is who answers at an address.
type serverState string

const (
	serverReady serverState = "ready"
	serverBusy  serverState = "busy"
	serverOther serverState = "other"
)

// ask finds out whether a server of ours answers at base: by its health, and by its list of sessions, which no other has.
func ask(ctx context.Context, base string) serverState {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var health struct {
		Status string `json:"status"`
	}
	var list struct {
		Sessions *json.RawMessage `json:"sessions"`
		Error    *struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	if fetch(ctx, base+"/healthz", &health) != http.StatusOK || health.Status != "ok" {
		return serverOther
	}
	fetch(ctx, base+"/v1/sessions?limit=1", &list)
	if list.Sessions == nil && (list.Error == nil || list.Error.Code == "") {
		return serverOther
	}
	if fetch(ctx, base+"/readyz", &health) != http.StatusOK {
		return serverBusy
	}
	return serverReady
}

// fetch reads a JSON answer into v and gives its status; 0 = there is none.
func fetch(ctx context.Context, url string, v any) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(v) != nil {
		return 0
	}
	return resp.StatusCode
}
