package remote

import (
	"encoding/json"
	"errors"
	"net/http"
)

// Token sends a request for a token and returns one field of the JSON object that it
// brings. No error shows what was sent, nor what came.
//
// Errors: *StatusError, *RequestError.
func Token(client *http.Client, s Subject, req *http.Request, field string) (string, error) {
	req.Header.Set("User-Agent", "berth")
	resp, err := client.Do(req)
	if err != nil {
		return "", failure(req.Context(), s, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", statusError(question{Subject: s, host: req.URL.Host}, resp)
	}
	body, err := small(req.Context(), s, resp.Body)
	if err != nil {
		return "", err
	}
	var object map[string]any
	// The error of the decoder may show a part of what it reads: a token.
	if err := json.Unmarshal(body, &object); err != nil {
		return "", &RequestError{s, errors.New("the answer is no JSON object")}
	}
	token, _ := object[field].(string)
	if token == "" {
		return "", &RequestError{s, errors.New("the answer has no " + field)}
	}
	return token, nil
}
