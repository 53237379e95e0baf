package protocol

// Name is the subprotocol and the value of hello's protocol.
const Name = "correx.v1"

// Bounds of fields, in bytes or items.
const (
	// MaxID bounds the id that a client gives its frame.
	MaxID = 128
	// MaxSessionID bounds a session id.
	MaxSessionID = 200
	// MaxIdempotencyKey bounds an idempotency key; it is a name in the journal's index.
	MaxIdempotencyKey = 256
	// MaxEvents bounds the events of one record_events.
	MaxEvents = 1000
	// MaxDepth bounds how deep objects and lists may nest in anything that comes in.
	MaxDepth = 128
)

// ClientFrame is a frame from a client.
//
//sumtype:decl
type ClientFrame interface {
	// FrameType is the value of "type".
	FrameType() string
	// FrameID is the client's own id of the frame, "" if it gave none; it is given back in the direct answer and in errors.
	FrameID() string
	isClientFrame()
}

// ServerFrame is a frame from the server.
//
//sumtype:decl
type ServerFrame interface {
	// FrameType is the value of "type".
	FrameType() string
	isServerFrame()
}

// OutputItem is a numbered output item of a session.
type OutputItem interface {
	ServerFrame
	// Place is the session and the item's number in it.
	Place() (sessionID string, seq uint64)
}

// List is a list that is [] when it is empty, never null.
type List[T any] []T

// MarshalJSON implements json.Marshaler.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if len(l) == 0 {
		return []byte("[]"), nil
	}
	return marshal([]T(l))
}
