package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrUnknownFrame is wrapped by DecodeServer for a frame of a type that this build does not know: a client skips it.
var ErrUnknownFrame = errors.New("unknown frame type")

// DecodeServer reads a server's frame, for clients in Go. Errors: ErrUnknownFrame, else it is no frame.
func DecodeServer(b []byte) (ServerFrame, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("decode frame: %w", err)
	}
	f := newServerFrame(head.Type)
	if f == nil {
		return nil, fmt.Errorf("decode frame %.64q: %w", head.Type, ErrUnknownFrame)
	}
	if err := json.Unmarshal(b, f); err != nil {
		return nil, fmt.Errorf("decode frame %q: %w", head.Type, err)
	}
	return f, nil
}

// serverFrames makes an empty frame of each type.
var serverFrames = []func() ServerFrame{
	func() ServerFrame { return new(Hello) },
	func() ServerFrame { return new(SessionStarted) },
	func() ServerFrame { return new(TurnAccepted) },
	func() ServerFrame { return new(Explanation) },
	func() ServerFrame { return new(Subscribed) },
	func() ServerFrame { return new(Unsubscribed) },
	func() ServerFrame { return new(Aborted) },
	func() ServerFrame { return new(Withdrawn) },
	func() ServerFrame { return new(OK) },
	func() ServerFrame { return new(Turn) },
	func() ServerFrame { return new(Session) },
	func() ServerFrame { return new(EventsRecorded) },
	func() ServerFrame { return new(Pong) },
	func() ServerFrame { return new(Error) },
	func() ServerFrame { return new(RunPhase) },
	func() ServerFrame { return new(StreamDelta) },
	func() ServerFrame { return new(StreamSnapshot) },
	func() ServerFrame { return new(StreamFinalize) },
	func() ServerFrame { return new(ToolStatus) },
	func() ServerFrame { return new(WatchdogPrompt) },
	func() ServerFrame { return new(TurnState) },
	func() ServerFrame { return new(RouterResponse) },
	func() ServerFrame { return new(Notice) },
	func() ServerFrame { return new(SessionEvent) },
	func() ServerFrame { return new(Gap) },
	func() ServerFrame { return new(Resync) },
}

func newServerFrame(name string) ServerFrame {
	if mk, ok := serverFrameByType[name]; ok {
		return mk()
	}
	return nil
}

var serverFrameByType = indexServerFrames()

func indexServerFrames() map[string]func() ServerFrame {
	index := make(map[string]func() ServerFrame, len(serverFrames))
	for _, mk := range serverFrames {
		index[mk().FrameType()] = mk
	}
	return index
}
