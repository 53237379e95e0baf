package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
)

// Encode writes a frame of the server.
func Encode(f ServerFrame) ([]byte, error) {
	if delta, ok := f.(*StreamDelta); ok {
		const fixed = 192 // what a delta has beside its text, about
		return appendDelta(make([]byte, 0, fixed+len(delta.Text)), delta), nil
	}
	return encodeFrame(f.FrameType(), f)
}

// EncodeClient writes a frame of a client.
func EncodeClient(f ClientFrame) ([]byte, error) { return encodeFrame(f.FrameType(), f) }

// EncodeBody writes an HTTP answer that is no frame.
func EncodeBody(b Body) ([]byte, error) { return marshal(b) }

// encoder is a buffer with the JSON encoder that writes into it.
type encoder struct {
	buf  bytes.Buffer
	json *json.Encoder
}

// maxPooled keeps a rare large answer from staying in memory for ever.
const maxPooled = 64 << 10

var encoders = sync.Pool{New: func() any {
	e := new(encoder)
	e.json = json.NewEncoder(&e.buf)
	e.json.SetEscapeHTML(false)
	return e
}}

// encodeFrame puts the type before the fields: the struct's opening brace becomes the comma after it.
func encodeFrame(name string, fields any) ([]byte, error) {
	return encode(fields, func(buf *bytes.Buffer) int {
		buf.WriteString(`{"type":"`)
		buf.WriteString(name)
		buf.WriteByte('"')
		return buf.Len()
	})
}

func marshal(v any) ([]byte, error) {
	return encode(v, func(*bytes.Buffer) int { return 0 })
}

// encode writes what head writes, then v. When head wrote something, v is an object that goes on with head's.
func encode(v any, head func(*bytes.Buffer) int) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.buf.Reset()
	start := head(&e.buf)
	if err := e.json.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	b := e.buf.Bytes()
	b = b[:len(b)-1] // the newline of json.Encoder
	if start > 0 && len(b) > start+len("{}") {
		b[start] = ','
	} else if start > 0 {
		b = append(b[:start], '}')
	}
	out := bytes.Clone(b)
	if e.buf.Cap() <= maxPooled {
		encoders.Put(e)
	}
	return out, nil
}
