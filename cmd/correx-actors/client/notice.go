package client

import "github.com/correx/correx-actors/messages/protocol"

// Notice is what a Talk tells.
//
//sumtype:decl
type Notice interface{ isNotice() }

// Connected tells that the conversation is connected and subscribed.
type Connected struct {
	Hello *protocol.Hello
	Start *protocol.Subscribed
	// Again: it had been before.
	Again bool
}

// Lost tells that the connection was lost; the Talk tries again.
type Lost struct{ Err error }

// Arrived is any frame that is not told of otherwise: output items, events, answers to questions.
type Arrived struct{ Frame protocol.ServerFrame }

// Accepted tells that an input is durable.
type Accepted struct {
	Input *protocol.ChatInput
	Turn  *protocol.TurnAccepted
}

// Refused tells that a request was refused; an input was not admitted.
type Refused struct {
	Request protocol.ClientFrame
	Err     *protocol.Error
}

// Settled tells that a turn has reached its end. It comes once for each Accepted.
type Settled struct {
	Input  *protocol.ChatInput
	TurnID string
	// State is the turn's end; for one that another turn's run took it is the end of that turn.
	State  string
	Reason string
	// Response that answers the turn; nil if it ended before a run took it, or was told of in Turn.
	Response *protocol.RouterResponse
	// Turn tells of an end that was missed while there was no connection; else nil.
	Turn *protocol.Turn
}

func (*Connected) isNotice() {}
func (*Lost) isNotice()      {}
func (*Arrived) isNotice()   {}
func (*Accepted) isNotice()  {}
func (*Refused) isNotice()   {}
func (*Settled) isNotice()   {}
