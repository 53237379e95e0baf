package messages

// NewIntent numbers an output item. The body is shared, not copied.
func NewIntent(key Key, seq uint64, body Intent) *DeliveryIntent {
	d := &DeliveryIntent{TenantId: string(key.Tenant), SessionId: string(key.Session), Seq: seq}
	switch b := body.(type) {
	case *RunPhaseChanged:
		d.Body = &DeliveryIntent_RunPhase{RunPhase: b}
	case *StreamDelta:
		d.Body = &DeliveryIntent_StreamDelta{StreamDelta: b}
	case *StreamSnapshot:
		d.Body = &DeliveryIntent_StreamSnapshot{StreamSnapshot: b}
	case *StreamFinalize:
		d.Body = &DeliveryIntent_StreamFinalize{StreamFinalize: b}
	case *TurnStateChanged:
		d.Body = &DeliveryIntent_TurnState{TurnState: b}
	case *RouterResponse:
		d.Body = &DeliveryIntent_RouterResponse{RouterResponse: b}
	case *Notice:
		d.Body = &DeliveryIntent_Notice{Notice: b}
	case *ToolStatus:
		d.Body = &DeliveryIntent_ToolStatus{ToolStatus: b}
	case *WatchdogPrompt:
		d.Body = &DeliveryIntent_WatchdogPrompt{WatchdogPrompt: b}
	}
	return d
}

// Intent gives the item's body; nil if a newer build wrote one that this build does not know.
func (d *DeliveryIntent) Intent() Intent {
	switch b := d.GetBody().(type) {
	case *DeliveryIntent_RunPhase:
		return b.RunPhase
	case *DeliveryIntent_StreamDelta:
		return b.StreamDelta
	case *DeliveryIntent_StreamSnapshot:
		return b.StreamSnapshot
	case *DeliveryIntent_StreamFinalize:
		return b.StreamFinalize
	case *DeliveryIntent_TurnState:
		return b.TurnState
	case *DeliveryIntent_RouterResponse:
		return b.RouterResponse
	case *DeliveryIntent_Notice:
		return b.Notice
	case *DeliveryIntent_ToolStatus:
		return b.ToolStatus
	case *DeliveryIntent_WatchdogPrompt:
		return b.WatchdogPrompt
	}
	return nil
}
