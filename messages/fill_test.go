package messages

import (
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func mapKeys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// filler sets fields of messages through their descriptors, so that it knows of a new field without being told.
type filler struct {
	rng *rand.Rand
	// all: every field is set, to something that is not its zero value, and nothing depends on the seed but the values.
	all bool
}

func randomFill(seed uint64) filler { return filler{rng: rand.New(rand.NewPCG(seed, seed))} }

func wholeFill() filler { return filler{rng: rand.New(rand.NewPCG(7, 7)), all: true} }

func (f filler) message(m protoreflect.Message) {
	if t, ok := m.Interface().(*timestamppb.Timestamp); ok {
		t.Seconds, t.Nanos = f.rng.Int64N(1<<32), f.rng.Int32N(1e9)
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !f.all && f.rng.IntN(4) == 0 {
			continue
		}
		switch {
		case field.IsList():
			list := m.Mutable(field).List()
			for range 1 + f.rng.IntN(2) {
				if field.Message() != nil {
					f.message(list.AppendMutable().Message())
				} else {
					list.Append(f.scalar(field))
				}
			}
		case field.Message() != nil:
			f.message(m.Mutable(field).Message())
		default:
			m.Set(field, f.scalar(field))
		}
	}
}

func (f filler) scalar(field protoreflect.FieldDescriptor) protoreflect.Value {
	switch field.Kind() { //nolint:exhaustive // the kinds of our schema; any other panics
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(f.text())
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(f.text() + "\xff"))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(f.all || f.rng.IntN(2) == 0)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(1 + f.rng.Int32N(math.MaxInt32-1))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1 + f.rng.Uint32N(math.MaxUint32))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(1 + f.rng.Uint64N(math.MaxUint64))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1 + f.rng.Int64N(math.MaxInt64))
	}
	panic("fill: no value for " + field.Kind().String())
}

func (f filler) text() string {
	runes := []rune("aZ09 \"\\\n\x00<>&é\u2028\U0001F600~:")
	var b strings.Builder
	for range 1 + f.rng.IntN(12) {
		b.WriteRune(runes[f.rng.IntN(len(runes))])
	}
	return b.String()
}
