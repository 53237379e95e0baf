package router

import "iter"

// List is an immutable list that only grows at its new end. Adding an entry gives a new List and writes nothing that an
// older one can reach, so lists are shared freely between goroutines and forks of one list do not see each other.
//
// It is Myers' applicative random-access stack: a linked list whose nodes also jump backward over a number of nodes that
// follows the skew binary numbers. Adding is O(1) with one allocation, going to a place is O(log n), and no entry is copied
// ever. The zero List is empty.
type List[T any] struct {
	newest *node[T]
}

// node is one entry; it is complete when it is made and never written again.
type node[T any] struct {
	value T
	// older is the entry before this one; nil for the first.
	older *node[T]
	// jump is this node or one further back that index may go on with; nil for the first.
	jump *node[T]
	// number of this entry, from 1.
	number int
}

// Len is the number of entries.
func (l List[T]) Len() int { return l.newest.len() }

// All gives every entry, oldest first. The slice is the caller's.
func (l List[T]) All() []T { return l.Page(0, l.Len()) }

// Newest gives the last n entries, oldest first; fewer if there are fewer. The slice is the caller's.
func (l List[T]) Newest(n int) []T {
	n = min(max(n, 0), l.Len())
	return l.Page(l.Len()-n, n)
}

// Page gives at most limit entries after the first after ones, oldest first: the number of the last entry of one page is the after of the
// next. The slice is the caller's, never nil.
func (l List[T]) Page(after, limit int) []T {
	after = min(max(after, 0), l.Len())
	page := make([]T, min(max(limit, 0), l.Len()-after))
	n := l.newest.back(after + len(page))
	for i := len(page) - 1; i >= 0; i-- {
		page[i] = n.value
		n = n.older
	}
	return page
}

// Backward yields every entry, newest first.
func (l List[T]) Backward() iter.Seq[T] {
	return func(yield func(T) bool) {
		for n := l.newest; n != nil; n = n.older {
			if !yield(n.value) {
				return
			}
		}
	}
}

// with gives l and v after it.
func (l List[T]) with(v T) List[T] {
	top := l.newest
	n := &node[T]{value: v, older: top, jump: top, number: top.len() + 1}
	// Two jumps of the same length in a row become one of the whole length.
	if top != nil && top.jump != nil && top.number-top.jump.number == top.jump.number-top.jump.jump.len() {
		n.jump = top.jump.jump
	}
	return List[T]{newest: n}
}

func (l List[T]) equal(o List[T], same func(a, b T) bool) bool {
	if l.Len() != o.Len() {
		return false
	}
	for a, b := l.newest, o.newest; a != b; a, b = a.older, b.older {
		if !same(a.value, b.value) {
			return false
		}
	}
	return true
}

func (n *node[T]) len() int {
	if n == nil {
		return 0
	}
	return n.number
}

// back finds the entry with a number that is at most n's own; nil for 0.
func (n *node[T]) back(number int) *node[T] {
	for n.len() > number {
		if n.jump.len() >= number {
			n = n.jump
		} else {
			n = n.older
		}
	}
	return n
}
