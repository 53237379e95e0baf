// Package tui is the chat on a whole terminal screen. Its model is a pure state machine: keys, notices of the client and ticks
// go in, effects come out, and View draws; Screen is the thin shell that reads the terminal and speaks to the server.
//
// What the server sends is text of strangers: nothing of it reaches the terminal but through clean, so no answer, note or
// name can move the cursor, set a title or fill the clipboard.
package tui
