// Package messages is the vocabulary of the runtime: what actors say to each other, what the journal holds and what goes
// over the network between our own processes. The schema is protobuf (proto/correx/v1); the sums are sealed here by
// unexported marker methods. It also holds ids and keys with their validation, and the one codec of records.
//
// It knows nothing of JSON clients: their frames live in messages/protocol, and the gateway translates.
// A message is immutable once it has been sent or stored: receivers never change one, senders never change one later.
package messages
