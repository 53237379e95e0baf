package kernel

// keepCapacity is the largest empty buffer a lane keeps, so that a burst does not cost an idle actor memory for ever.
const keepCapacity = 64

// lane is a FIFO ring that grows. The zero value is empty. It is not safe for concurrent use.
type lane[T any] struct {
	buf  []T // len is zero or a power of two
	head int
	n    int
}

func (l *lane[T]) push(v T) {
	if l.n == len(l.buf) {
		l.grow()
	}
	l.buf[(l.head+l.n)&(len(l.buf)-1)] = v
	l.n++
}

func (l *lane[T]) pushFront(v T) {
	if l.n == len(l.buf) {
		l.grow()
	}
	l.head = (l.head - 1) & (len(l.buf) - 1)
	l.buf[l.head] = v
	l.n++
}

// pop must not be called on an empty lane.
func (l *lane[T]) pop() T {
	var zero T
	v := l.buf[l.head]
	l.buf[l.head] = zero
	l.head = (l.head + 1) & (len(l.buf) - 1)
	l.n--
	if l.n == 0 {
		l.head = 0
		if len(l.buf) > keepCapacity {
			l.buf = nil
		}
	}
	return v
}

// take empties the lane and gives its content in order.
func (l *lane[T]) take() []T {
	if l.n == 0 {
		l.buf = nil
		return nil
	}
	all := make([]T, 0, l.n)
	for l.n > 0 {
		all = append(all, l.pop())
	}
	l.buf = nil
	return all
}

func (l *lane[T]) grow() {
	buf := make([]T, max(4, 2*len(l.buf)))
	for i := range l.n {
		buf[i] = l.buf[(l.head+i)&(len(l.buf)-1)]
	}
	l.buf, l.head = buf, 0
}
